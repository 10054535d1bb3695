"""The table and the figures that a run ends with."""

from io import BytesIO
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from mela.reporting import figures
from mela.reporting.summary import NAMES, data_name, markdown, summary_rows

LABEL = {"clusters": 64, "tasks_clustered": 98.64}
SCORES = {
    "clusters": 64,
    "true_classes": 64,
    "accuracy": 99.46,
    "accuracy_all_tasks": 97.25,
    "purity": 99.0,
    "ari": 0.98765,
    "nmi": 0.99,
    "kmeans": {"purity": 60.0, "ari": 0.4321, "nmi": 0.7},
}
PRETRAIN = {"labels": "mela", "proposition1": {"task_loss": 0.123449, "global_loss": 1.5}}


def interval(mean: float, ci95: float) -> dict[str, float]:
    return {"mean": mean, "ci95": ci95}


EVALUATION: dict[str, Any] = {
    "initial": {"1_shot": interval(60.204, 0.806), "5_shot": interval(75.6, 0.5)},
    "mela": {"1_shot": interval(62.0, 0.8), "5_shot": interval(75.5, 0.5)},
    "gain": {"1_shot": interval(1.796, 0.3), "5_shot": interval(-0.1, 0.25)},
}
NO_TEST_TASKS: dict[str, Any] = {"initial": {}, "mela": {}, "gain": {}}


def lines(**changes: Any) -> dict[str, str]:
    contents = {"label": LABEL, "scores": SCORES, "pretrain": PRETRAIN, "evaluation": EVALUATION} | changes
    rows = summary_rows(**contents)
    assert len(dict(rows)) == len(rows)
    return dict(rows)


def test_the_lines_of_a_run() -> None:
    assert list(lines().items()) == [
        ("clusters found", "64 for 64 true classes"),
        ("tasks clustered", "98.6%"),
        ("clustering accuracy", "99.5% (all tasks: 97.2%)"),
        ("adjusted Rand index", "0.988 (K-means: 0.432)"),
        ("Proposition 1", "0.1234 <= 1.5000"),
        ("1-shot: initial embedding", "60.20 ± 0.81"),
        ("1-shot: MeLa (inferred labels)", "62.00 ± 0.80"),
        ("1-shot: gain, paired", "+1.80 ± 0.30"),
        ("5-shot: initial embedding", "75.60 ± 0.50"),
        ("5-shot: MeLa (inferred labels)", "75.50 ± 0.50"),
        ("5-shot: gain, paired", "-0.10 ± 0.25"),
    ]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (65, "65 for 64 true classes (over-clustered: some classes are split)"),
        (63, "63 for 64 true classes (under-clustered: some classes share a cluster)"),
        (64, "64 for 64 true classes"),
    ],
)
def test_more_or_fewer_clusters_than_classes(found: int, expected: str) -> None:
    assert lines(label=LABEL | {"clusters": found})["clusters found"] == expected


def test_the_remark_of_the_log_is_shown() -> None:
    remark = "thin evidence: only 62% of the task classes would find their cluster without being part of it"
    assert lines(label=LABEL | {"remark": remark})["remark"] == remark
    assert "remark" not in lines()
    assert "remark" not in lines(label=LABEL | {"remark": None})


def test_merged_task_classes_are_counted() -> None:
    counts = {"task_classes_merged": 1180, "task_classes_not_merged": 20, "task_classes_left_out": 0}
    assert lines(label=LABEL | counts)["task classes"] == "1,180 merged, 20 not merged with any other"
    found = lines(label=LABEL | counts | {"task_classes_left_out": 15})["task classes"]
    assert found == "1,180 merged, 20 not merged with any other, 15 without a cluster"
    assert "task classes" not in lines()


def test_the_data_is_named_first() -> None:
    assert next(iter(lines(data="tasks in data/raw/mine").items())) == ("data", "tasks in data/raw/mine")
    assert "data" not in lines()
    assert data_name({"data": "glyphs"}) == "glyphs"
    assert data_name({"clusters": 3}) is None


def test_without_truth() -> None:
    found = lines(scores={"clusters": 64})
    assert found["clusters found"] == "64 (true classes not known)"
    assert found["clustering accuracy"] == "not known: this data has no ground truth"
    assert "adjusted Rand index" not in found
    assert found["5-shot: gain, paired"] == "-0.10 ± 0.25"


def test_without_test_tasks() -> None:
    found = lines(evaluation=NO_TEST_TASKS)
    assert found["few-shot accuracy"] == "not measured: there are fewer than two test tasks"
    assert not [name for name in found if "shot:" in name]


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ("mela", "MeLa (inferred labels)"),
        ("kmeans", "pre-trained on K-means labels (ablation)"),
        ("mela_soft", "MeLa (inferred soft labels)"),
        ("oracle", "pre-trained on the true labels (oracle)"),
    ],
)
def test_the_final_embedding_is_named_by_its_labels(labels: str, name: str) -> None:
    found = lines(pretrain=PRETRAIN | {"labels": labels})
    assert found[f"1-shot: {name}"] == "62.00 ± 0.80"
    named = [key for key in found if key.startswith("1-shot: ") and key.endswith(tuple(NAMES.values()))]
    assert named == [f"1-shot: {name}"]


def test_markdown() -> None:
    assert markdown([("a", "1"), ("b", "2 ± 3")]) == "| | |\n|---|---|\n| a | 1 |\n| b | 2 ± 3 |\n"


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
        "round": [1, 1, 1, 1, 2, 2, 2],
        "clusters": [99, 30, 12, 11, 11, 10, 9],
        "log_odds": [80.0, 20.0, 3.0, -2.0, 30.0, 12.0, -5000.0],
        "made": [True, True, True, False, True, True, False],
    }
)
SIZES = pd.DataFrame({"rank": [1, 2, 3], "tasks": [9, 4, 4], "threshold": 2.5})
CURVE = pd.DataFrame({"epoch": [1, 2, 3], "loss": [1.0, 0.5, 0.25], "accuracy": [20.0, 60.0, 90.0]})


@pytest.mark.parametrize("settings", [["1_shot", "5_shot"], ["5_shot"]])
def test_accuracy_figure(settings: list[str]) -> None:
    evaluation = {name: {key: values[key] for key in settings} for name, values in EVALUATION.items()}
    figure = figures.accuracy_figure(evaluation, NAMES["oracle"])
    check_picture(figure)
    (axes,) = figure.axes
    assert legend(figure) == ["initial embedding", NAMES["oracle"]]
    assert [label.get_text() for label in axes.get_xticklabels()] == [key.replace("_", "-") for key in settings]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == [evaluation[name][key]["mean"] for name in ("initial", "mela") for key in settings]


@pytest.mark.parametrize(("true_classes", "names"), [(64, ["true classes"]), (None, [])])
@pytest.mark.parametrize("passes", [PASSES, PASSES.tail(1)], ids=["two passes", "one pass"])
def test_clusters_figure(passes: pd.DataFrame, true_classes: int | None, names: list[str]) -> None:
    figure = figures.clusters_figure(passes, MERGES.head(0), true_classes)
    check_picture(figure)
    fewest = "fewest tasks of a cluster kept"
    assert legend(figure) == ["clusters", fewest, *names, "tasks clustered (%)", "est. precision (%)"]
    assert figure.axes[0].lines[1].get_ydata().tolist() == passes["threshold"].tolist()
    clusters, share = (axes.lines[0].get_ydata().tolist() for axes in figure.axes)
    assert clusters == ([300, 70, 70] if len(passes) == 2 else [70, 70])
    assert share == ([80, 100] if len(passes) == 2 else [100])


@pytest.mark.parametrize(("true_classes", "names"), [(10, ["true classes"]), (None, [])])
def test_merges_figure(true_classes: int | None, names: list[str]) -> None:
    figure = figures.clusters_figure(PASSES.head(0), MERGES, true_classes)
    check_picture(figure)
    assert legend(figure) == ["first round", "second round", "not made", *names]
    (axes,) = figure.axes
    drawn = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in axes.lines[:3]]
    assert drawn == [([30, 12], [20, 3]), ([11, 10], [30, 12]), ([9], [-5000])]


def test_no_merge_and_no_pass() -> None:
    """As with few tasks, whose classes all stay apart; read from a file, empty columns have no type."""
    merges = MERGES.head(0).astype(object)
    figure = figures.clusters_figure(PASSES.head(0).astype(object), merges, None)
    check_picture(figure)
    assert legend(figure) == ["first round", "second round", "not made"]


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
