"""The study of what it is worth to subtract what the images of a task share."""

import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest

from mela.labeling.task_classes import group_samples
from mela.params import PARAMS, PeopleParams, RoundsParams
from studies.labels import centered, people
from tests.helpers.project import ROOT, TINY, change, run_stages


def test_which_task_class_is_nearest() -> None:
    """By angle; the other classes of a task do not count, however near they are."""
    points = np.array([[1.0, 0.1], [1.0, 0.0], [5.0, 0.6], [0.1, 1.0], [0.0, 3.0], [-1.0, 0.0]])
    tasks, labels = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 1, 0, 1, 0, 1])
    samples = group_samples(points.repeat(2, axis=0), np.arange(12), tasks.repeat(2), labels.repeat(2))
    truth = np.array([0, 1, 0, 2, 2, 1])
    # the first and the third find each other, and so do the fourth and the fifth
    assert centered.nearest_alike(samples, truth) == 4 / 6


@pytest.mark.slow
def test_rounds_that_are_centered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the rounds that are asked for none, the first or all; the row is of the last of them."""
    preset = tmp_path / "tiny.yaml"
    shutil.copy(ROOT / "presets/glyphs_people.yaml", preset)
    few = PeopleParams(train=24, val=80, test=80, ways=5, share=0.75).model_dump(exclude_defaults=True)
    change(preset, TINY | {"data.people": few, "tasks.ways": 5})
    told = []

    def run(folder: Path, *cells: str) -> None:
        told.append((cells, RoundsParams.read(folder / PARAMS)))
        with chdir(folder):
            run_stages(*(cell.replace(" ", "@") for cell in cells))

    monkeypatch.setattr(people, "preset", lambda data: preset)
    monkeypatch.setattr(centered, "run_stages", run)
    how = {"data": "tiny", "share": 0.5, "seed": 1, "folder": tmp_path, "root": tmp_path}
    asked = [(1, "none"), (1, "first"), (2, "none"), (2, "first"), (2, "all")]
    rows = [centered.measure(rounds=rounds, centered=which, **how) for rounds, which in asked]
    assert [settings for _, settings in told] == [
        RoundsParams(first=True),
        RoundsParams(first="centered"),
        RoundsParams(first=True, second=True),
        RoundsParams(first="centered", second=True),
        RoundsParams(first="centered", second="centered"),
    ]
    assert told[0][0] == (*centered.BEFORE, "round first")
    assert told[2][0] == (*centered.BEFORE, "round first", "round second")
    assert not (tmp_path / "tiny_0.5_1").exists()
    assert all(0 <= row["nearest"] <= 1 for row in rows)
    assert all(0 < row["5_shot"] <= 100 and row["1_shot_ci95"] > 0 for row in rows)
    assert len({row["5_shot"] for row in rows}) == 5
