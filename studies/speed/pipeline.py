"""Measure what an experiment costs beside its training: ``dvc exp run`` with another q, and the start of stages.

A round is a clone of what is committed, with the outputs that dvc.lock names, so that everything up to ``extract`` is
known, and nothing of what follows: the clone has no run cache. Python's bytecode is cached as it is for a user who has
run the pipeline before. Numbers of seconds are what a clock on the wall shows.
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from mela.errors import MelaError
from studies.clones import for_clone
from studies.speed.measure import Timing, alternate, record, write_rows

ROOT = Path(__file__).parents[2]
LABELING = ("label", "label_merged", "label_kmeans", "label_oracle", "score_labels")
WITHOUT_TORCH = ("images", "names", "manifest", "corrections", *LABELING, "confusions", "report")
EXPERIMENTS: dict[tuple[str, ...], set[str]] = {
    # what is of other labels stays as it is
    ("labeler.q=5.5",): {"label", "score_labels", "pretrain@pruned", "evaluate", "confusions", "report"},
}
SHORT = ("pretrain.epochs=2", "pretrain.milestones=[1]")
LIMIT, START_LIMIT = 5.0, 1.0

Line = tuple[float, str]


@dataclass(frozen=True, kw_only=True)
class Round:
    """Hold the seconds of one experiment: in all, in the loop of ``pretrain``, and of each stage with its hashing."""

    total: float
    training: float
    stages: dict[str, float]

    @property
    def outside(self) -> float:
        """Seconds outside of the training loop."""
        return self.total - self.training

    @property
    def dvc(self) -> float:
        """Seconds outside of all stages."""
        return self.total - sum(self.stages.values())


def stage_seconds(lines: Sequence[Line]) -> dict[str, float]:
    """Return the seconds of each stage that ran, from what dvc prints and when.

    Parameters
    ----------
    lines : sequence of (seconds, text)
    """
    seconds, running = {}, ("", 0.0)
    for moment, text in lines:
        if started := re.match(r"Running stage '([\w@]+)'", text):
            running = (started[1], moment)
        elif text.startswith("Updating lock file"):
            name, start = running
            seconds[name] = moment - start
    return seconds


def training_seconds(lines: Sequence[Line]) -> float:
    """Return the seconds in the loop of ``pretrain``, from when it prints its epochs.

    Nothing tells when the first epoch begins; it is taken to be as long as the others are on average.

    Parameters
    ----------
    lines : sequence of (seconds, text)
    """
    ends = [moment for moment, text in lines if re.match(r"pretrain@\w+: epoch \d+/\d+:", text)]
    if len(ends) < 2:
        raise MelaError(f"pretrain: expected lines of at least two epochs, found {len(ends)}; raise pretrain.epochs")
    return (ends[-1] - ends[0]) * len(ends) / (len(ends) - 1)


def run_experiment(work: Path, changes: Sequence[str], affected: set[str]) -> Round:
    """Run an experiment in a new clone below `work`, which runs the `affected` stages."""
    environment = for_clone(
        PYTHONPYCACHEPREFIX=str(work / "bytecode"), PYTHONUNBUFFERED="1", DVC_SITE_CACHE_DIR=str(work / "site")
    )
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH"):
        environment.pop(name, None)
    with TemporaryDirectory(dir=work) as name:
        folder = Path(name) / "clone"
        _watch(["git", "clone", "--quiet", str(ROOT), str(folder)], work, environment)
        for arguments in [
            ["remote", "add", "--local", "--default", "outputs", str(ROOT / ".dvc/cache")],
            ["pull", "--quiet"],
            # as after any earlier command: dvc remembers the hashes of unchanged files
            ["status", "--quiet"],
        ]:
            _watch(["dvc", *arguments], folder, environment)
        start = time.perf_counter()
        command = ["dvc", "exp", "run", *(part for change in changes for part in ("--set-param", change))]
        lines = _watch(command, folder, environment)
        total = time.perf_counter() - start
    stages = stage_seconds(lines)
    if set(stages) != affected:
        raise MelaError(
            f"dvc exp run: expected {', '.join(sorted(affected))} to run, found {', '.join(sorted(stages)) or 'none'}; "
            "change only what label reads, and commit dvc.lock of a `make repro`"
        )
    training = training_seconds(lines) if "pretrain@pruned" in stages else 0.0
    return Round(total=total, training=training, stages=stages)


def _watch(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> list[Line]:
    """Run a command, and return what it prints and when."""
    start, lines = time.perf_counter(), []
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for text in process.stdout:
            lines.append((time.perf_counter() - start, text))
    if process.returncode:
        said = " ".join("".join(text for _, text in lines[-5:]).split())
        raise MelaError(f"{' '.join(command)}: expected it to succeed, got status {process.returncode}: {said}")
    return lines


def experiment_row(changes: Sequence[str], affected: set[str], n: int) -> dict[str, Any]:
    """Return the median of `n` rounds, after a short one that is not counted."""
    with TemporaryDirectory() as name:
        work = Path(name)
        run_experiment(work, [*changes, *(SHORT if "pretrain@pruned" in affected else ())], affected)
        rounds = [run_experiment(work, changes, affected) for _ in range(n)]
    stages = {name: round(median(one.stages[name] for one in rounds), 3) for name in rounds[0].stages}
    parts = {name: round(median(getattr(one, name) for one in rounds), 3) for name in ("total", "training", "dvc")}
    outside, data = Timing.of([one.outside for one in rounds]), " ".join(changes)
    return record("pipeline_glyphs", outside, LIMIT, unit="s", n=n, data=data, stages=stages, **parts)


def start_row(n: int) -> dict[str, Any]:
    """Measure how long the stages that need no torch take to show their options; the slowest counts."""

    def start(stage: str) -> Callable[[], object]:
        command = [sys.executable, "-m", f"stages.{stage}", "--help"]
        return lambda: subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)

    times = dict(zip(WITHOUT_TORCH, alternate(*map(start, WITHOUT_TORCH), n=n), strict=True))
    stages = {stage: round(timing.median, 3) for stage, timing in times.items()}
    slowest = max(times.values(), key=lambda timing: timing.median)
    return record("stage_start_without_torch", slowest, START_LIMIT, unit="s", n=n, stages=stages)


def main(n: Annotated[int, typer.Option(min=3, help="rounds")] = 3) -> None:
    """Add the results to studies/results/bench.json."""
    rows = [start_row(n), *(experiment_row(changes, affected, n) for changes, affected in EXPERIMENTS.items())]
    write_rows(rows)
