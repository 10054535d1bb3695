"""The tables, the sentence and the figures that a run ends with."""

from io import BytesIO
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from mela.reporting import figures
from mela.reporting.summary import (
    NAMES,
    Table,
    accuracies,
    data_name,
    headline,
    labels,
    markdown,
    remarks,
    rounds_table,
)
from tests.helpers.outcomes import LABELS, SCORES, UNKNOWN, evaluation, interval, outcome

ONE_SHOT = ("1_shot",)
CLASSES = "82 classes (there are 80) were found in tasks that were labelled independently"


def test_accuracies_stand_beside_paired_differences() -> None:
    table = accuracies(outcome())
    assert table.columns == ("setting", "labels learned", "accuracy, %", "over initial", "over true labels")
    assert table.rows == [
        ("1-shot", "none (initial)", "60.20 ± 0.81", "", ""),
        ("1-shot", "MeLa, merged", "66.00 ± 1.50", "+5.80 ± 0.30", "-1.50 ± 0.12"),
        ("1-shot", "MeLa, pruned", "62.00 ± 0.80", "+1.80 ± 0.30", "-5.50 ± 0.70"),
        ("1-shot", "true labels", "67.50 ± 0.50", "+7.30 ± 0.40", ""),
        ("5-shot", "none (initial)", "75.60 ± 0.50", "", ""),
        ("5-shot", "MeLa, merged", "75.50 ± 0.25", "-0.10 ± 0.25", "-4.50 ± 0.20"),
        ("5-shot", "MeLa, pruned", "74.00 ± 0.50", "-1.60 ± 0.25", "-6.00 ± 0.30"),
        ("5-shot", "true labels", "80.00 ± 0.50", "+4.40 ± 0.30", ""),
    ]


def test_without_a_training_on_true_labels_nothing_is_compared_with_it() -> None:
    rows = accuracies(outcome(evaluation=evaluation("initial", "merged", shots=ONE_SHOT))).rows
    assert [row[1:] for row in rows] == [
        ("none (initial)", "60.20 ± 0.81", "", ""),
        ("MeLa, merged", "66.00 ± 1.50", "+5.80 ± 0.30", ""),
    ]


def test_labels_stand_beside_the_truth() -> None:
    table = labels(outcome())
    assert table.columns == ("labels", "clusters for classes", "accuracy, %", "ARI", "tasks clustered, %")
    assert table.rows == [
        ("MeLa, merged", "82 for 80", "99.5", "0.988", "98.6"),
        ("MeLa, pruned", "64 for 80", "92.0", "0.910", "97.5"),
        ("K-means", "80 for 80", "", "0.432", ""),
    ]


def test_labels_that_are_off_have_no_row() -> None:
    rows = labels(outcome(labels={"merged": LABELS["merged"]}, scores={"merged": SCORES["merged"]})).rows
    assert [row[0] for row in rows] == ["MeLa, merged"]


def test_without_truth() -> None:
    found = outcome(scores=UNKNOWN)
    assert labels(found).rows == [
        ("MeLa, merged", "82", "", "", "98.6"),
        ("MeLa, pruned", "64", "", "", "97.5"),
        ("K-means", "80", "", "", ""),
    ]
    assert remarks(found) == ["the quality of labels is not known: this data has no ground truth"]
    assert accuracies(found) == accuracies(outcome())


def test_without_test_tasks() -> None:
    table = accuracies(outcome(evaluation=evaluation(shots=())))
    assert table.rows == []
    assert table.empty == "few-shot accuracy was not measured: there are fewer than two test tasks"


def test_the_remarks_of_both_logs_are_shown() -> None:
    assert remarks(outcome()) == []
    thin = "thin evidence: only 62% of the task classes would find their cluster without being part of it"
    pruned = {**LABELS["pruned"], "remark": "pruning ran away"}
    found = remarks(outcome(labels={"merged": {**LABELS["merged"], "remark": thin}, "pruned": pruned}))
    assert found == [f"MeLa, merged: {thin}", "MeLa, pruned: pruning ran away"]


def test_merged_task_classes_are_counted() -> None:
    counts = {"task_classes_merged": 1180, "task_classes_not_merged": 20, "task_classes_left_out": 15}
    found = remarks(outcome(labels={"merged": LABELS["merged"] | counts}))
    assert found == ["MeLa, merged: 1,180 of 1,215 task classes share their class; 20 are alone, 15 have none"]


def test_the_data_is_known_where_the_run_says_so() -> None:
    assert data_name({"data": "glyphs"}) == "glyphs"
    assert data_name({"merged": {"clusters": 3}}) is None


@pytest.mark.parametrize(
    ("used", "changes", "expected"),
    [
        (
            "merged",
            {},
            f"{CLASSES}; pre-training on them takes 1-shot accuracy on new classes from 60.2% to 66.0% (+5.8 ± 0.3 "
            "points, paired); true labels reach 67.5%.",
        ),
        (
            "pruned",
            {"evaluation": evaluation("initial", "pruned")},
            f"{CLASSES.replace('82', '64')}; pre-training on them takes 1-shot accuracy on new classes from 60.2% to "
            "62.0% (+1.8 ± 0.3 points, paired).",
        ),
        (
            "pruned",
            {"evaluation": evaluation(shots=("5_shot",))},
            f"{CLASSES.replace('82', '64')}; pre-training on them lowers 5-shot accuracy on new classes from 75.6% to "
            "74.0% (-1.6 ± 0.2 points, paired); true labels reach 80.0%.",
        ),
        (
            "merged",
            {"evaluation": evaluation(shots=("5_shot",))},
            f"{CLASSES}; pre-training on them makes no clear difference to 5-shot accuracy on new classes: 75.6% "
            "before, 75.5% after (-0.1 ± 0.2 points, paired); true labels reach 80.0%.",
        ),
        (
            "merged",
            {"scores": UNKNOWN, "evaluation": evaluation("initial", "merged")},
            f"{CLASSES.replace(' (there are 80)', '')}; pre-training on them takes 1-shot accuracy on new tasks (their "
            "classes may occur in training) from 60.2% to 66.0% (+5.8 ± 0.3 points, paired).",
        ),
        (
            "merged",
            {"evaluation": evaluation("initial", "merged")},
            f"{CLASSES}; pre-training on them takes 1-shot accuracy on new tasks (their classes may occur in training) "
            "from 60.2% to 66.0% (+5.8 ± 0.3 points, paired).",
        ),
        (
            "merged",
            {"evaluation": evaluation(shots=())},
            f"{CLASSES}; there are too few test tasks to measure accuracy.",
        ),
    ],
    ids=["gain", "pruned", "loss", "no difference", "no truth", "tasks with truth", "no test tasks"],
)
def test_the_run_in_one_sentence(used: str, changes: dict[str, Any], expected: str) -> None:
    new_classes = "new tasks" not in expected
    assert headline(outcome(**changes), used, new_classes=new_classes) == expected


def test_markdown() -> None:
    table = Table(title="t", columns=("a", "b"), rows=[("1", ""), ("2", "3 ± 4")], empty="nothing")
    assert markdown(table) == "| a | b |\n| --- | --- |\n| 1 |  |\n| 2 | 3 ± 4 |\n"
    assert markdown(Table(title="t", columns=("a", "b"), empty="nothing")) == "nothing\n"


def check_picture(figure: Figure) -> None:
    file = BytesIO()
    figure.savefig(file, format="png")
    low, high = Image.open(file).convert("L").getextrema()
    assert low < 100 < 200 < high


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes if axes.get_legend() for text in axes.get_legend().get_texts()]


PASSES = pd.DataFrame(
    {
        "pass": [1, 2],
        "clusters": [300, 70],
        "threshold": [-3.5, 2.0],
        "kept": [70, 70],
        "tasks_clustered": [80.0, 100.0],
        "precision": [70.0, 95.0],
        "match": [0.1, 0.2],
        "match_error": [0.01, 0.01],
    }
)
MERGES = pd.DataFrame(
    {
        "phase": [1, 1, 1, 1, 2, 2, 2],
        "clusters": [99, 30, 12, 11, 11, 10, 9],
        "log_odds": [80.0, 20.0, 3.0, -2.0, 30.0, 12.0, -5000.0],
        "made": [True, True, True, False, True, True, False],
    }
)
SIZES = pd.DataFrame({"rank": [1, 2, 3], "tasks": [9, 4, 4], "threshold": 2.5})
CURVE = pd.DataFrame({"epoch": [1, 2, 3], "loss": [1.0, 0.5, 0.25], "accuracy": [20.0, 60.0, 90.0]})


@pytest.mark.parametrize("shots", [("1_shot", "5_shot"), ("5_shot",)])
@pytest.mark.parametrize("models", [(), ("initial", "pruned")])
def test_accuracy_figure(shots: tuple[str, ...], models: tuple[str, ...]) -> None:
    found = evaluation(*models, shots=shots)
    figure = figures.accuracy_figure(found)
    check_picture(figure)
    (axes,) = figure.axes
    assert legend(figure) == [NAMES[name] for name in found["accuracy"]]
    assert [label.get_text() for label in axes.get_xticklabels()] == [key.replace("_", "-") for key in shots]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == [known[key]["mean"] for known in found["accuracy"].values() for key in shots]
    # the bars of a setting stand side by side around its name
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert all(end <= start for (_, end), (start, _) in pairwise(edges))
    for number, bar in enumerate(axes.patches):
        assert abs(bar.get_x() + bar.get_width() / 2 - number % len(shots)) < 0.4


@pytest.mark.parametrize("models", [2, 4, 6])
@pytest.mark.parametrize("shots", [1, 2, 4])
def test_numbers_on_bars_do_not_lie_over_one_another(models: int, shots: int) -> None:
    """Where all means are the same, numbers are in one line."""
    settings = [f"{number}_shot" for number in range(shots)]
    accuracy = {name: {setting: interval(50.0, 1.0) for setting in settings} for name in list(NAMES)[:models]}
    figure = figures.accuracy_figure({"tasks": dict.fromkeys(settings, 600), "accuracy": accuracy})
    figure.draw_without_rendering()
    places = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda place: place.x0)
    assert len(places) == models * shots
    assert all(left.x1 <= right.x0 for left, right in pairwise(places))


def test_every_embedding_has_a_colour_of_its_own() -> None:
    assert figures.COLORS.keys() == NAMES.keys()
    assert len(set(figures.COLORS.values())) == len(NAMES)


@pytest.mark.parametrize(("true_classes", "names"), [(64, ["true classes"]), (None, [])])
@pytest.mark.parametrize("passes", [PASSES, PASSES.tail(1)], ids=["two passes", "one pass"])
def test_passes_figure(passes: pd.DataFrame, true_classes: int | None, names: list[str]) -> None:
    figure = figures.passes_figure(passes, true_classes)
    check_picture(figure)
    fewest = "fewest tasks of a cluster kept"
    assert legend(figure) == ["clusters", fewest, *names, "tasks clustered (%)", "est. precision (%)"]
    assert figure.axes[0].lines[1].get_ydata().tolist() == passes["threshold"].tolist()
    clusters, share = (axes.lines[0].get_ydata().tolist() for axes in figure.axes)
    assert clusters == ([300, 70, 70] if len(passes) == 2 else [70, 70])
    assert share == ([80, 100] if len(passes) == 2 else [100])


@pytest.mark.parametrize(("true_classes", "names"), [(10, ["true classes"]), (None, [])])
def test_merges_figure(true_classes: int | None, names: list[str]) -> None:
    figure = figures.merges_figure(MERGES, true_classes)
    check_picture(figure)
    assert legend(figure) == ["first phase", "second phase", "not made", *names]
    (axes,) = figure.axes
    drawn = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in axes.lines[:3]]
    assert drawn == [([30, 12], [20, 3]), ([11, 10], [30, 12]), ([9], [-5000])]


def test_no_merge() -> None:
    """As with few tasks, whose classes all stay apart; read from a file, empty columns have no type."""
    figure = figures.merges_figure(MERGES.head(0).astype(object), None)
    check_picture(figure)
    assert legend(figure) == ["first phase", "second phase", "not made"]


@pytest.mark.parametrize("sizes", [SIZES, SIZES.head(1), SIZES.assign(threshold=-40.0)])
def test_sizes_figure(sizes: pd.DataFrame) -> None:
    figure = figures.sizes_figure(sizes)
    check_picture(figure)
    assert legend(figure) == ["cluster", "fewest tasks kept"]
    assert figure.axes[0].lines[0].get_ydata()[0] == sizes["threshold"].iloc[0]


@pytest.mark.parametrize("epochs", [3, 1])
def test_curves_figure(epochs: int) -> None:
    figure = figures.curves_figure(CURVE.head(epochs), CURVE)
    check_picture(figure)
    assert [axes.get_title() for axes in figure.axes[:2]] == ["initial embedding", "pre-training"]
    assert figure.axes[0].lines[0].get_ydata().tolist() == CURVE["loss"].head(epochs).tolist()


def test_rounds_are_listed_with_what_is_known_of_them() -> None:
    first = {"clusters": 1600, "loss": 0.25}
    doubtful = {"clusters": 510, "loss": 0.5, "pair_precision": 40.0, "pair_precision_error": 30.0, "match": 0.0161}
    last = {
        "clusters": 66,
        "loss": 0.1,
        "pair_precision": 81.24,
        "pair_precision_error": 2.06,
        "match": 0.1348,
        "expected_ari": 0.526,
    }
    table = rounds_table({"first": first, "second": doubtful, "sixth": last, "seventh": last | {"match": 0.2}})
    assert [row[:4] for row in table.rows] == [
        ("first", "1,600", "", ""),
        ("second", "510", "", "0.016"),
        ("sixth", "66", "81.2% ± 2.1 (standard error)", "0.135"),
        ("seventh", "66", "81.2% ± 2.1 (standard error)", "0.200"),
    ]
    assert [row[4:] for row in table.rows[:3]] == [("", "0.2500"), ("", "0.5000"), ("0.53", "0.1000")]
    only = rounds_table({"first": {**first, "match": 0.1}, "second": {**first, "pair_precision": 7.0}})
    assert [row[2:4] for row in only.rows] == [("", "0.100"), ("7.0%", "")]
    assert not rounds_table({}).rows
