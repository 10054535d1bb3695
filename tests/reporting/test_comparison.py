"""Two runs side by side: paired where both were tested on the same tasks, and only there."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela.errors import MelaError
from mela.evaluation.intervals import Interval
from mela.reporting.comparison import MISSING, Measured, accuracies_of_two, different_parameters
from tests.helpers.commands import mela
from tests.helpers.project import change, run_stages

GENERATOR = np.random.default_rng(0)
BEFORE = GENERATOR.uniform(20, 90, 40)
AFTER = BEFORE + GENERATOR.normal(2, 1, 40)


def measured(
    values: np.ndarray, *, tasks: bytes = b"tasks", model: str = "merged", params: dict | None = None
) -> Measured:
    rows = {"task_id": np.arange(len(values)), "model": model, "setting": "1_shot", "accuracy": values}
    return Measured(accuracies=pd.DataFrame(rows), tasks=tasks, params=params or {})


def test_the_same_tasks_are_compared_in_pairs() -> None:
    (row,) = accuracies_of_two(measured(AFTER), measured(BEFORE), "main").rows
    here, there, gain = Interval.of(AFTER), Interval.of(BEFORE), Interval.of(AFTER - BEFORE)
    assert row == ("1-shot", "MeLa, merged", f"{here:.2f}", f"{there:.2f}", f"{gain:+.2f}")
    assert gain.ci95 < here.ci95 / 10


@pytest.mark.parametrize("what", [{"tasks": b"others"}, {"params": {"data": {"name": "omniglot"}}}])
def test_other_tasks_are_not_compared_in_pairs(what: dict) -> None:
    table = accuracies_of_two(measured(AFTER), measured(BEFORE[:30], **what), "main")
    assert "other test tasks" in table.title
    here, there = Interval.of(AFTER), Interval.of(BEFORE[:30])
    assert table.rows[0][-1] == f"{here.mean - there.mean:+.2f} ± {np.hypot(here.ci95, there.ci95):.2f}"


def test_what_only_one_run_has_is_left_out() -> None:
    assert accuracies_of_two(measured(AFTER), measured(BEFORE, model="oracle"), "main").rows == []
    assert accuracies_of_two(measured(AFTER), measured(BEFORE[:1], tasks=b""), "main").rows == []


def test_parameters_that_differ() -> None:
    one = measured(AFTER, params={"use": "merged", "labeler": {"q": 1.0, "seed": 0}, "runtime": {"device": "cpu"}})
    other = measured(BEFORE, params={"use": "merged", "labeler": {"q": 5.5}, "kmeans": {"seed": 1}})
    assert different_parameters(one, other) == [
        ("labeler.q", "1.0", "5.5"),
        ("labeler.seed", "0", MISSING),
        ("kmeans.seed", MISSING, "1"),
    ]


@pytest.mark.slow
def test_the_command_compares_two_folders(copied: Path) -> None:
    shutil.copytree(".", "../other")
    former = Path("../other/params.yaml")
    former.write_text(former.read_text(encoding="utf-8").replace("  image_size:", "  size:"), encoding="utf-8")
    change(Path("params.yaml"), {"evaluate.C": 0.1})
    run_stages("evaluate", "report")
    done = mela("summary", "--against", "../other", "--markdown")
    assert (done.returncode, done.stderr) == (0, "")
    table = accuracies_of_two(Measured.read(Path()), Measured.read(Path("../other")), "../other")
    assert len(table.rows) == 8 * 2
    assert "the same test tasks" in table.title
    rows = done.stdout.split("\n\n")[-1].splitlines()
    assert rows[2:] == [f"| {' | '.join(row)} |" for row in table.rows]
    Path("results").rename("moved")
    moved = mela("summary", "--against", "../other", "--markdown", "--results", "moved")
    assert moved.stdout == done.stdout
    Path("moved").rename("results")
    told = mela("summary", "--against", "../other")
    assert "evaluate.C: 0.1, and 1.0 there\n" in told.stdout
    assert "size" not in told.stdout
    assert mela("summary", "--latex").stdout.count(r"\begin{tabular}") == 2


@pytest.mark.slow
def test_what_it_refuses(copied: Path) -> None:
    Path("empty").mkdir()
    for arguments, error in (
        (["--latex", "--markdown"], "--latex, --markdown: expected one of them, got both; leave one out"),
        (["--against", "empty"], "empty/results/evaluate/per_task.parquet: no such file; run `dvc repro` there"),
        (["--against", "nowhere"], "--against: expected a folder, or a revision whose results DVC has, got 'nowhere'"),
    ):
        done = mela("summary", *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: {error}")
        assert done.stderr.count("\n") == 1
    with pytest.raises(MelaError, match="no such file"):
        Measured.read(Path("empty"))
