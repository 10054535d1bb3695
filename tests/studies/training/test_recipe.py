"""Recipes are tried on validation tasks of a preset, with true labels."""

import shutil
from pathlib import Path

import pandas as pd
import pytest

from mela.data.episodes import Episodes
from studies.training import recipe
from tests.helpers.project import ROOT, TINY, change

CHANGES = {"epochs": 1, "milestones": [], "scheduler": "linear", "label_smoothing": 0.1}


def test_a_recipe_learns_true_labels_and_is_judged_by_validation_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "PRESETS", tmp_path)
    monkeypatch.setattr(recipe, "TASKS", 6)
    shutil.copy(ROOT / "presets/glyphs.yaml", tmp_path / "glyphs.yaml")
    change(tmp_path / "glyphs.yaml", TINY)
    judged = []
    accuracies = recipe.Images.accuracies

    def told(own: recipe.Images, backbone: object, tasks: Episodes) -> pd.DataFrame:
        judged.append((own, tasks))
        return accuracies(own, backbone, tasks)

    monkeypatch.setattr(recipe.Images, "accuracies", told)
    where = {"folder": tmp_path, "root": tmp_path}
    found = recipe.measure(data="glyphs", recipe="a", settings=CHANGES, **where)
    again = recipe.measure(data="glyphs", recipe="b", settings=CHANGES, **where)
    longer = recipe.measure(data="glyphs", recipe="c", settings=CHANGES | {"epochs": 2}, **where)
    rotated = recipe.measure(data="glyphs", recipe="d", settings=CHANGES | {"rotated_classes": True}, **where)
    sharp = recipe.measure(data="glyphs", recipe="e", settings=CHANGES | {"label_smoothing": 0.0}, **where)
    (own, tasks), *_ = judged
    assert len(tasks) == 6
    assert set(tasks.image_ids()) <= set(own.truth("val")["image_id"])
    assert rotated["images"] == 4 * found["images"]
    assert found["images"] * 2 == longer["images"] == 2 * len(own.truth("train"))
    assert {**found, "minutes": 0} == {**again, "minutes": 0}
    assert found["5_shot"] > 25
    assert found["5_shot"] != sharp["5_shot"]
    assert found["5_shot"] != longer["5_shot"]
