"""Growth with the size of data: what is told of it, and its steps at a small size."""

import re
from pathlib import Path

import numpy as np
import pytest

from studies.speed import scale


def test_growth_is_told_against_the_size_before() -> None:
    usage = {"peak": 2_000_000, "own_peak": 1_000_000, "load": 0.0}
    found = {
        300: usage | {"seconds": 9.0, "cpu_seconds": 3.0},
        10: usage | {"seconds": 0.2, "cpu_seconds": 0.1},
        100: usage | {"seconds": 2.0, "cpu_seconds": 1.5},
    }
    rows = scale.rows_of("pack", found)
    assert [(row["name"], row["data"]) for row in rows] == [("scale_pack", str(n)) for n in (10, 100, 300)]
    assert [row["ratio"] for row in rows] == [1.0, 1.0, 1.5]
    assert [row["cpu_ratio"] for row in rows] == [1.0, 1.5, pytest.approx(0.667)]
    assert [(row["peak_mb"], row["own_peak_mb"]) for row in rows] == [(2.0, 1.0)] * 3


def test_each_step_of_the_scale_runs_on_what_those_before_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name, value in {"DIMENSIONS": 12, "CLASSES": 8, "LABEL_IMAGES": 400, "J": 30}.items():
        monkeypatch.setattr(scale, name, value)
    for kind, steps, n in [("images", scale.IMAGE_STEPS, 400), ("tasks", scale.TASK_STEPS, 50)]:
        folder = tmp_path / f"{kind}-{n}"
        folder.mkdir()
        for step in steps.values():
            step(folder, n)
    assert np.load(tmp_path / "images-400" / "images.npy").shape == (400, 32, 32, 3)
    said = capsys.readouterr().out
    assert "label_merged: 8 clusters, 100.0% of tasks clustered" in said
    assert re.search(r"^label: \d+ clusters, 100.0% of tasks clustered$", said, flags=re.MULTILINE)
    assert not any((tmp_path / "elsewhere").iterdir()), "the results of a project are not its own"


def test_what_is_measured_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "ProcessPoolExecutor", None)
    (tmp_path / "read.json").write_text('{"seconds": 3.5}', encoding="utf-8")
    assert scale.once("read", tmp_path, 10) == {"seconds": 3.5}
