"""What DVC compares between runs."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mela.errors import MelaError
from mela.params import DataParams, LabelerParams
from mela.reporting.summary import accuracy_table, overview, require_report, sweep_row
from tests.helpers.project import ROOT

LABEL = {"clusters": 82, "tasks_clustered": 97.5, "pair_precision": 91.0}
SCORES = {"clusters": 82, "true_classes": 80, "ari": 0.91, "accuracy": 92.0}


def interval(mean: float, ci95: float) -> dict[str, float]:
    return {"mean": mean, "ci95": ci95}


EVALUATION = {
    "initial": {"1_shot": interval(60.0, 1.0), "5_shot": interval(70.0, 0.5)},
    "mela": {"1_shot": interval(66.0, 1.5), "5_shot": interval(78.0, 0.25)},
    "gain": {"1_shot": interval(6.0, 0.75), "5_shot": interval(8.0, 0.5)},
    "tasks": {"1_shot": 600, "5_shot": 600},
}
NOTHING: dict[str, Any] = {"initial": {}, "mela": {}, "gain": {}, "tasks": {}}
SETTINGS = LabelerParams.read(ROOT / "presets/glyphs.yaml").model_copy(update={"merge": False, "q": 5.5})


def test_the_few_figures() -> None:
    assert overview(LABEL, SCORES, EVALUATION, data="glyphs") == {
        "data": "glyphs",
        "clusters": 82,
        "tasks_clustered": 97.5,
        "true_classes": 80,
        "ari": 0.91,
        "1_shot": {"initial": 60.0, "final": 66.0, "gain": 6.0, "gain_ci95": 0.75},
        "5_shot": {"initial": 70.0, "final": 78.0, "gain": 8.0, "gain_ci95": 0.5},
    }


def test_without_truth_and_test_tasks() -> None:
    expected = {"data": "tasks in mine", "clusters": 82, "tasks_clustered": 97.5}
    assert overview(LABEL, {"clusters": 82}, NOTHING, data="tasks in mine") == expected
    row = sweep_row(SETTINGS, LABEL, {"clusters": 82}, NOTHING)
    assert row[["ari", "accuracy"]].isna().all(axis=None)
    assert accuracy_table(NOTHING, {"labels": "mela"}).to_csv(index=False) == "name,mean,low,high\n"


def test_accuracies_have_both_ends() -> None:
    table = accuracy_table(EVALUATION, {"labels": "oracle"})
    assert table["name"].tolist() == [
        "1-shot: initial embedding",
        "1-shot: pre-trained on the true labels (oracle)",
        "5-shot: initial embedding",
        "5-shot: pre-trained on the true labels (oracle)",
    ]
    assert table[["mean", "low", "high"]].to_numpy().tolist() == [
        [60.0, 59.0, 61.0],
        [66.0, 64.5, 67.5],
        [70.0, 69.5, 70.5],
        [78.0, 77.75, 78.25],
    ]


@pytest.mark.parametrize(("merge", "method"), [(True, "merge"), (False, "prune")])
def test_a_point_of_a_sweep(merge: bool, method: str) -> None:
    row = sweep_row(SETTINGS.model_copy(update={"merge": merge}), LABEL, SCORES, EVALUATION)
    expected = {"q": 5.5, "n_clusters": 300, "method": method} | LABEL | {"ari": 0.91, "accuracy": 66.0}
    assert row.to_dict("records") == [expected]


def test_they_are_those_of_the_stages(copied: Path) -> None:
    found = json.loads((copied / "results/metrics.json").read_text(encoding="utf-8"))
    evaluation = json.loads((copied / "results/evaluate/metrics.json").read_text(encoding="utf-8"))
    scores = json.loads((copied / "results/score_labels/metrics.json").read_text(encoding="utf-8"))
    assert found["ari"] == scores["ari"]
    assert found["5_shot"]["gain"] == evaluation["gain"]["5_shot"]["mean"]
    table = pd.read_csv(copied / "results/accuracies.csv")
    assert len(table) == 2 * len(evaluation["mela"])
    sweep = pd.read_csv(copied / "results/sweep.csv")
    assert sweep["accuracy"].item() == pytest.approx(found["1_shot"]["final"], rel=1e-5)


def test_the_calibration_error_stands_where_there_is_a_temperature() -> None:
    values = {"temperature": 0.1, "ece_before": 40.0, "ece": 2.0}
    calibration = {"mela": {"1_shot": values | {"temperature": None}, "5_shot": values}}
    found = overview(LABEL, SCORES, EVALUATION | {"calibration": calibration}, data="glyphs")
    assert "ece" not in found["1_shot"]
    assert found["5_shot"]["ece"] == 2.0


def test_own_data_is_known_by_its_folder() -> None:
    glyphs = DataParams.read(ROOT / "presets/glyphs.yaml")
    assert glyphs.described == "glyphs"
    assert glyphs.model_copy(update={"name": "tasks", "root": "data/raw/mine"}).described == "tasks in data/raw/mine"


def test_a_report_of_another_run_is_told() -> None:
    kept = overview(LABEL, SCORES, EVALUATION, data="tasks in mine")
    require_report(kept, LABEL, SCORES, EVALUATION, where="metrics.json")
    message = (
        r"^metrics.json: the report is of another run than the metrics of {}, so one table would mix them; finish the "
        r"run, with `dvc repro` or `mela run`$"
    )
    for stages, *metrics in (
        ("label", LABEL | {"clusters": 7}, SCORES, EVALUATION),
        ("score_labels, evaluate", LABEL, {"clusters": 82}, NOTHING),
        ("evaluate", LABEL, SCORES, EVALUATION | {"mela": EVALUATION["initial"]}),
    ):
        with pytest.raises(MelaError, match=message.format(stages)):
            require_report(kept, *metrics, where="metrics.json")


def test_a_report_of_a_former_version_lacks_some_figures() -> None:
    kept = overview(LABEL, SCORES, EVALUATION, data="glyphs")
    del kept["data"]
    calibration = {"mela": {"1_shot": {"temperature": 0.5, "ece_before": 60.0, "ece": 1.0}}}
    require_report(kept, LABEL, SCORES, EVALUATION | {"calibration": calibration}, where="metrics.json")
