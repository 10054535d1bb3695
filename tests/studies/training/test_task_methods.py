"""Methods are trained on the tasks of a pipeline that has run, and compared with its true labels."""

import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mela.errors import MelaError
from mela.io import schemas, store
from mela.training.checkpoint import Checkpoint
from stages.common import paths
from studies.training import task_methods

SHOTS = ("1_shot", "5_shot")


@pytest.mark.slow
def test_methods_are_trained_as_the_embedding_is_and_compared_with_true_labels(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "glyphs_0"
    shutil.copytree(finished, folder)
    monkeypatch.chdir(tmp_path)

    def row(**changes: Any) -> dict[str, Any]:
        cell = {"data": "glyphs", "seed": 0, "method": "protonet", "tasks": "upright", "optimizer": "adam"}
        (found,) = task_methods.measure(**cell | {"rate": 0.003, "share": 1.0, "projects": tmp_path} | changes)
        assert found["dataset"] == "all"
        return found

    def accuracies(found: dict[str, Any]) -> list[float]:
        return [found[setting] for setting in SHOTS]

    whole = row()
    # 20 tasks of 100 images, twice
    assert whole["images"] == 4000
    assert whole["minutes"] > 0
    assert whole["n"] == 12
    tested = store.read_table(folder / paths.PER_TASK, schemas.ACCURACIES).query("split == 'test'")
    true = tested[tested["model"] == "oracle"].groupby("setting")["accuracy"].mean()
    for setting in SHOTS:
        assert 20 < whole[f"validation_{setting}"] <= 100
        assert whole[setting] - true[setting] == pytest.approx(whole[f"{setting}_less_oracle"], abs=2e-3)
    again = row()
    assert again | {"minutes": 0} == whole | {"minutes": 0}
    others = [
        row(tasks="rotated"),
        row(seed=1),
        row(rate=0.0003),
        row(optimizer="sgd"),
        row(method="a head per task"),
        row(method="r2d2"),
    ]
    assert len({tuple(accuracies(one)) for one in [whole, *others]}) == 7

    (folder / paths.TEST).unlink()
    half = row(share=0.5)
    assert half["images"] == 2000
    assert not {*half} & {"n", *SHOTS}, "rates are chosen without any test task"
    with pytest.raises(MelaError, match=r"test.parquet: no such file"):
        row()


@pytest.mark.slow
def test_an_interrupted_training_goes_on(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "glyphs_0").symlink_to(finished)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Checkpoint, "due", lambda own: True)
    cell: dict[str, Any] = {"data": "glyphs", "seed": 0, "method": "protonet", "tasks": "upright", "optimizer": "adam"}
    cell |= {"rate": 0.003, "share": 1.0, "projects": tmp_path}
    (whole,), save, saved = task_methods.measure(**cell), Checkpoint.save, []

    def cut_off(own: Checkpoint, *state: Any) -> None:
        save(own, *state)
        saved.append(own.path)
        if len(saved) == 15:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", cut_off)
    with pytest.raises(KeyboardInterrupt):
        task_methods.measure(**cell)
    assert saved[0].is_file()
    (again,) = task_methods.measure(**cell)
    assert len(saved) < 45, "it does not begin anew"
    assert "minutes" not in again, "nobody knows how long the first part took"
    assert again == {name: value for name, value in whole.items() if name != "minutes"}
    assert not saved[0].exists()


def test_the_table_has_what_is_measured() -> None:
    table = pd.read_csv(Path(__file__).parents[3] / "studies/results/task_methods.csv")
    whole = table["share"] == 1
    assert table.loc[~whole, "1_shot"].isna().all()
    assert table.loc[whole, ["1_shot", "5_shot", "n"]].notna().all().all()
    assert (table.loc[~whole, "seed"] == 100).all(), "rates are chosen with a seed that nothing else has"


@pytest.mark.slow
def test_a_method_is_measured_on_each_data_set(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "two_0"
    shutil.copytree(finished, folder)
    monkeypatch.chdir(tmp_path)
    test = store.read_table(folder / paths.TEST, schemas.MANIFEST)
    test["dataset"] = test["task_id"].map(lambda task: "birds" if task % 3 else "coins")
    store.write_table(folder / paths.TEST, test, schemas.MANIFEST_OF_DATASETS, stage="manifest", params={})
    cell: dict[str, Any] = {"data": "two", "seed": 0, "method": "protonet", "tasks": "upright", "optimizer": "adam"}
    whole, *parts = task_methods.measure(**cell, rate=0.003, share=1.0, projects=tmp_path)
    assert [(row["dataset"], row["n"]) for row in (whole, *parts)] == [("all", 12), ("birds", 8), ("coins", 4)]
    for setting in (*SHOTS, "1_shot_less_oracle"):
        assert whole[setting] == pytest.approx((2 * parts[0][setting] + parts[1][setting]) / 3, abs=2e-3)
