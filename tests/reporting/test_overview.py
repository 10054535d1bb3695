"""What DVC compares between runs."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mela.errors import MelaError
from mela.params import DataParams, LabelerParams
from mela.reporting.summary import accuracy_table, overview, require_report, sweep_row
from tests.helpers.outcomes import LABELS, SCORES, UNKNOWN, evaluation, outcome
from tests.helpers.project import ROOT

NO_TASKS = evaluation(shots=())
SETTINGS = LabelerParams.read(ROOT / "presets/glyphs.yaml").model_copy(update={"q": 5.5})


def test_what_is_known_of_each_embedding() -> None:
    found = overview(outcome(data="glyphs", evaluation=evaluation("initial", "merged", "oracle", shots=("5_shot",))))
    assert found == {
        "data": "glyphs",
        "true_classes": 80,
        "initial": {"5_shot": {"mean": 75.6, "ci95": 0.5}},
        "merged": {
            "clusters": 82,
            "tasks_clustered": 98.64,
            "accuracy": 99.46,
            "ari": 0.98765,
            "5_shot": {"mean": 75.5, "ci95": 0.25, "gain": -0.1, "to_oracle": -4.5},
        },
        "oracle": {"5_shot": {"mean": 80.0, "ci95": 0.5, "gain": 4.4}},
        # labels that nothing was trained on
        "pruned": {"clusters": 64, "tasks_clustered": 97.5, "accuracy": 92.0, "ari": 0.91},
        "kmeans": {"clusters": 80, "ari": 0.4321},
    }


def test_without_truth_and_test_tasks() -> None:
    found = overview(
        outcome(scores=UNKNOWN, evaluation=evaluation("initial", "merged", shots=()), data="tasks in mine")
    )
    assert found == {
        "data": "tasks in mine",
        "initial": {},
        "merged": {"clusters": 82, "tasks_clustered": 98.64},
        "pruned": {"clusters": 64, "tasks_clustered": 97.5},
        "kmeans": {"clusters": 80},
    }
    row = sweep_row(SETTINGS, outcome(scores=UNKNOWN, evaluation=NO_TASKS))
    assert row[["ari", "accuracy"]].isna().all(axis=None)
    assert row[["clusters", "tasks_clustered"]].to_numpy().tolist() == [[64, 97.5]]
    assert accuracy_table(NO_TASKS).to_csv(index=False) == "name,mean,low,high\n"


def test_accuracies_have_both_ends() -> None:
    table = accuracy_table(evaluation("initial", "merged", "oracle"))
    assert table["name"].tolist() == [
        f"{shots}-shot: {name}" for shots in (1, 5) for name in ("none (initial)", "MeLa, merged", "true labels")
    ]
    expected = [
        [60.204, 59.398, 61.01],
        [66.0, 64.5, 67.5],
        [67.5, 67.0, 68.0],
        [75.6, 75.1, 76.1],
        [75.5, 75.25, 75.75],
        [80.0, 79.5, 80.5],
    ]
    for found, row in zip(table[["mean", "low", "high"]].to_numpy().tolist(), expected, strict=True):
        assert found == pytest.approx(row)


def test_a_point_of_a_sweep_is_about_pruning() -> None:
    expected = {"q": 5.5, "n_clusters": 300} | LABELS["pruned"] | {"ari": 0.91, "accuracy": 62.0}
    assert sweep_row(SETTINGS, outcome()).to_dict("records") == [expected]


def test_a_sweep_without_pruning_has_its_parameters_alone() -> None:
    without = {name: {"merged": content["merged"]} for name, content in (("labels", LABELS), ("scores", SCORES))}
    row = sweep_row(SETTINGS, outcome(evaluation=evaluation("initial", "merged", "oracle"), **without))
    assert list(row.columns) == list(sweep_row(SETTINGS, outcome()).columns)
    assert row[["q", "n_clusters"]].to_numpy().tolist() == [[5.5, 300]]
    assert row.drop(columns=["q", "n_clusters"]).isna().all(axis=None)


def test_pruned_labels_that_nothing_learned_have_no_accuracy() -> None:
    row = sweep_row(SETTINGS, outcome(evaluation=evaluation("initial", "merged")))
    assert row[["clusters", "ari"]].to_numpy().tolist() == [[64, 0.91]]
    assert row["accuracy"].isna().all()


def test_they_are_those_of_the_stages(copied: Path) -> None:
    found = json.loads((copied / "results/metrics.json").read_text(encoding="utf-8"))
    measured = json.loads((copied / "results/evaluate/metrics.json").read_text(encoding="utf-8"))
    scores = json.loads((copied / "results/score_labels/metrics.json").read_text(encoding="utf-8"))
    assert list(measured["accuracy"]) == ["initial", "merged", "pruned", "oracle"]
    for name, known in scores.items():
        assert found[name]["ari"] == known["ari"]
    for name, known in measured["gain"].items():
        assert found[name]["5_shot"]["gain"] == known["5_shot"]["mean"]
        assert found[name]["1_shot"]["mean"] == measured["accuracy"][name]["1_shot"]["mean"]
    table = pd.read_csv(copied / "results/accuracies.csv")
    assert len(table) == len(measured["accuracy"]) * len(measured["tasks"])
    sweep = pd.read_csv(copied / "results/sweep.csv")
    assert sweep["accuracy"].item() == pytest.approx(found["pruned"]["1_shot"]["mean"], rel=1e-5)


def test_the_stages_write_a_row_without_pruning(people_copied: Path) -> None:
    sweep = pd.read_csv("results/sweep.csv")
    assert sweep[["q", "n_clusters"]].to_numpy().tolist() == [[6.5, 12]]
    assert sweep.drop(columns=["q", "n_clusters"]).isna().all(axis=None)
    assert json.loads(Path("results/label/pruned.json").read_text("utf-8")) == {}
    assert "pruned" not in json.loads(Path("results/metrics.json").read_text("utf-8"))


def test_the_calibration_error_stands_where_there_is_a_temperature() -> None:
    values = {"temperature": 0.1, "ece_before": 40.0, "ece": 2.0}
    calibration = {"merged": {"1_shot": values | {"temperature": None}, "5_shot": values}}
    found = overview(outcome(evaluation=evaluation(calibration=calibration)))
    assert "ece" not in found["merged"]["1_shot"]
    assert found["merged"]["5_shot"]["ece"] == 2.0
    assert "ece" not in found["pruned"]["5_shot"]


def test_own_data_is_known_by_its_folder() -> None:
    glyphs = DataParams.read(ROOT / "presets/glyphs.yaml")
    assert glyphs.described == "glyphs"
    assert glyphs.model_copy(update={"name": "tasks", "root": "data/raw/mine"}).described == "tasks in data/raw/mine"


MEASURED = evaluation()
OF_INITIAL = MEASURED | {"accuracy": MEASURED["accuracy"] | {"merged": MEASURED["accuracy"]["initial"]}}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"labels": LABELS | {"merged": LABELS["merged"] | {"tasks_clustered": 7.0}}}, "merged"),
        ({"scores": SCORES | {"pruned": SCORES["pruned"] | {"ari": 0.5}}}, "pruned"),
        ({"scores": UNKNOWN}, "kmeans, merged, pruned, true_classes"),
        ({"evaluation": NO_TASKS}, "initial, merged, oracle, pruned"),
        ({"evaluation": OF_INITIAL}, "merged"),
        ({"evaluation": evaluation("initial", "merged", "pruned")}, "merged, oracle, pruned"),
    ],
    ids=["labels", "scores", "no truth", "no test tasks", "accuracy", "a training that is off"],
)
def test_a_report_of_another_run_is_told(changes: dict[str, Any], named: str) -> None:
    kept = overview(outcome(data="tasks in mine"))
    require_report(kept, outcome(), where="metrics.json")
    message = (
        rf"^metrics.json: the report is of another run than the metrics of {named}, so one table would mix them; "
        r"finish the run, with `dvc repro` or `mela run`$"
    )
    with pytest.raises(MelaError, match=message):
        require_report(kept, outcome(**changes), where="metrics.json")


def test_a_report_that_does_not_name_its_data_is_of_the_same_run() -> None:
    kept = overview(outcome(data="glyphs"))
    del kept["data"]
    require_report(kept, outcome(data="glyphs"), where="metrics.json")
