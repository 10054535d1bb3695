"""Accuracy against the number of training tasks: how uneven tasks are drawn, and the study from end to end."""

import shutil
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer

from benchmark.places import preset
from mela.params import EmbedParams, MethodsParams
from studies.grid import program
from studies.labels import task_numbers
from studies.labels.task_numbers import DATA, KINDS, NUMBERS, SHOTS, WAYS, Point, summary, uneven_tasks
from tests.helpers.project import ROOT, TINY, change

CLASSES = {f"c{number}": np.arange(30) + 30 * number for number in range(10)}
OF_IMAGE = np.repeat(np.arange(10), 30)


def test_uneven_tasks() -> None:
    rows = uneven_tasks(CLASSES, 300, 15, seed=0)
    shots = rows[rows["role"] == "support"].groupby(["task_id", "local_label"]).size()
    queries = rows[rows["role"] == "query"].groupby(["task_id", "local_label"]).size()
    assert sorted(shots.unique()) == list(range(SHOTS[0], SHOTS[1] + 1))
    assert set(queries) == {15}
    ways = rows.groupby("task_id")["local_label"].nunique()
    assert sorted(ways.unique()) == list(range(WAYS[0], WAYS[1] + 1))
    assert not rows.duplicated(["task_id", "image_id"]).any()
    true = rows.assign(true=OF_IMAGE[rows["image_id"]])
    assert (true.groupby(["task_id", "local_label"])["true"].nunique() == 1).all()
    assert (true.groupby(["task_id", "true"])["local_label"].nunique() == 1).all()
    shorter = uneven_tasks(CLASSES, 20, 15, seed=0)
    pd.testing.assert_frame_equal(rows[rows["task_id"] < 20], shorter)
    assert not uneven_tasks(CLASSES, 20, 15, seed=1)["image_id"].equals(shorter["image_id"])


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("kind", [EmbedParams, MethodsParams])
def test_trainings_have_the_same_steps_whatever_the_number_of_tasks(
    data: str, number: int, kind: type[EmbedParams] | type[MethodsParams], tmp_path: Path
) -> None:
    point = Point(params=preset(data), folder=tmp_path, results=tmp_path, kind="even", number=number, seed=0)
    settings = point.block(kind)
    stretched = point.stretched(settings)
    per_epoch = stretched.tasks_per_epoch or 0
    assert 0 < per_epoch <= number
    steps = settings.epochs * (settings.tasks_per_epoch or 0)
    assert abs(stretched.epochs * per_epoch - steps) <= per_epoch / 2, "up to a part of an epoch"
    assert max(stretched.milestones) < stretched.epochs


def test_the_table_is_that_of_the_results() -> None:
    """What is in the repository."""
    known = pd.read_csv(ROOT / "studies/results/task_numbers.csv")
    folder = ROOT / "studies/results/task_numbers"
    found = pd.DataFrame(
        {"data": data, "kind": kind, "training_tasks": number} | row
        for data, kind, number in product(DATA, KINDS, NUMBERS)
        for row in summary(folder / data, kind, number)
    )
    pd.testing.assert_frame_equal(known, found, check_dtype=False, rtol=1e-4)


@pytest.mark.parametrize("data", DATA)
def test_figures_show_all_that_is_measured(data: str) -> None:
    """Each system in one colour, whatever else its panel has, and no point off the scale."""
    rows = pd.read_csv(ROOT / "studies/results/task_numbers.csv")
    rows = rows[rows["data"] == data]
    colours: dict[str, set[Any]] = {}
    shown = 0
    for panel in task_numbers.plot(rows).axes:
        low, high = panel.get_ylim()
        for curve in panel.containers:
            line = curve.lines[0]  # type: ignore[attr-defined]
            colours.setdefault(curve.get_label(), set()).add(line.get_color())
            assert ((line.get_ydata() > low) & (line.get_ydata() < high)).all()
            shown += len(line.get_ydata())
    assert shown == len(rows)
    assert len({colour for found in colours.values() for colour in found}) == len(colours)


@pytest.mark.slow
def test_the_study_from_end_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = tmp_path / "tiny.yaml"
    shutil.copy(ROOT / "benchmark/data/glyphs.yaml", tiny)
    training = {"methods.epochs": 2, "methods.milestones": [1], "methods.tasks_per_epoch": 8, "tasks.test": 9}
    change(tiny, TINY | training)
    monkeypatch.setattr(task_numbers, "preset", lambda data: tiny)
    monkeypatch.setattr(task_numbers, "NUMBERS", (8, 20))
    monkeypatch.setattr(task_numbers, "FIGURES", tmp_path)
    monkeypatch.setattr(task_numbers, "DATA", {"glyphs": {"images_per_class": 30}})
    out, figure = tmp_path / "rows.csv", tmp_path / "task-numbers-glyphs.png"
    places: dict[str, Any] = {"folder": tmp_path / "study", "results": tmp_path / "results", "out": out}
    places |= {"data": ["glyphs"], "seeds": 1}
    run = program("labels.task_numbers")
    run(kind=["uneven"], training_tasks=[20], **places)
    first = capsys.readouterr().out
    assert "uneven, 8 tasks" not in first
    assert first.count("glyphs, uneven, 20 tasks, seed 0: ") == 5
    run(kind=["uneven"], **places)
    told = first + capsys.readouterr().out
    assert told.count("glyphs, uneven, 8 tasks, seed 0: ") == told.count("glyphs, uneven, 20 tasks, seed 0: ") == 5
    rows = pd.read_csv(out)
    assert len(rows) == 2 * 2 * 5
    assert set(rows["tasks"]) == {9}
    assert (rows.loc[rows["system"] == "merged-rfs", "difference"] == 0).all()
    assert rows["mean"].between(10, 100).all()
    assert (rows["images"] <= rows["all_images"]).all()
    assert rows.groupby("training_tasks")["all_images"].first().is_monotonic_increasing
    assert figure.read_bytes().startswith(b"\x89PNG")
    known = [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.parquet"))]
    run(kind=["uneven"], **places)
    assert not capsys.readouterr().out
    assert [path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*.parquet"))] == known
    run(kind=["uneven"], again=True, **places)
    assert "uneven" not in capsys.readouterr().out.replace("kind=uneven", ""), "only the rows are made again"
    order = ["training_tasks", "system", "setting"]
    pd.testing.assert_frame_equal(*(table.sort_values(order, ignore_index=True) for table in (pd.read_csv(out), rows)))
    where: dict[str, Any] = {"params": tiny, "folder": places["folder"] / "glyphs", "results": tmp_path}
    even, uneven = (Point(**where, kind=kind, number=20, seed=0).drawn("test", 9) for kind in KINDS)
    pd.testing.assert_frame_equal(even, uneven)
    with pytest.raises(typer.BadParameter, match=r"expected even or uneven, got 'unevn'"):
        run(kind=["unevn"], **places)
    with pytest.raises(typer.BadParameter, match=r"--data: expected glyphs, got 'imagenet'"):
        run(**places | {"data": ["imagenet"]})
    with pytest.raises(typer.BadParameter, match=r"--training_tasks: expected 8 or 20, got 9"):
        run(training_tasks=[9], **places)
