"""Kills at random moments: nothing half-written, nothing left running, and the same bytes in the end."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from mela.io import atomic, store
from mela.params import LABELS, ROUNDS
from stages.common import orphans
from studies.clones import for_clone
from studies.robustness.kills import running
from tests.helpers.forked import Forked, with_forks
from tests.helpers.pipeline import listed
from tests.helpers.project import CELLS, ROOT, TINY, change, stage_words

pytestmark = pytest.mark.slow

# of the trainings one that works, and one that has nothing to do; of the rounds, which are off, one that passes on the
# features of the initial embedding, and one that passes on those of another round
ALIKE = [*(f"pretrain@{labels}" for labels in LABELS[2:]), *(f"round@{number}" for number in ROUNDS[2:])]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ENVIRONMENT = for_clone(OMP_NUM_THREADS="1")
INTERRUPTED = "error: interrupted by {}; run the same command again to go on\n"


def outputs(folder: Path, stage: str) -> dict[str, bytes]:
    """Content of all files of a stage."""
    found = {}
    for name in listed(stage, "outs", "metrics", "plots"):
        path = folder / name
        files = [path] if path.is_file() else sorted(path.rglob("*"))
        found |= {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}
    return found


def start(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env=ENVIRONMENT | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[str] | Forked) -> None:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err


def wait_until(what: str, condition: Callable[[], bool], *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"expected {what} within {seconds} seconds"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    """A clone in which every stage has run, without DVC, and how many seconds each took."""
    folder = tmp_path_factory.mktemp("whole")
    for name in ("mela", "stages"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "presets/glyphs.yaml", folder / "params.yaml")
    change(folder / "params.yaml", TINY | {"runtime.checkpoint_seconds": 0, "compare.oracle": False})
    seconds = {}
    for stage in CELLS:
        start = time.monotonic()
        finish(Forked(stage_words(stage), folder, ENVIRONMENT))
        seconds[stage] = time.monotonic() - start
    return folder, seconds


@pytest.mark.parametrize("stage", [cell for cell in CELLS if cell not in ALIKE])
def test_kills_at_random_moments(stage: str, whole: tuple[Path, dict[str, float]], tmp_path: Path) -> None:
    """Two, or six of a training, one after the other, each going on from where the one before it ended.

    Stages are forks of a process that has imported torch, so that most kills come while they work.
    """
    folder = tmp_path / "project"
    shutil.copytree(whole[0], folder)
    expected = outputs(folder, stage)
    assert expected
    for name in expected:
        (folder / name).unlink()
    draw = random.Random(stage)
    kills = [*SIGNALS, *SIGNALS] if stage in ("embed", "pretrain@merged") else draw.sample(SIGNALS, 2)
    for number in kills:
        process = Forked(stage_words(stage), folder, ENVIRONMENT)
        time.sleep(draw.uniform(0.1, whole[1][stage]))
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
        if process.returncode == 128 + number:
            assert err == INTERRUPTED.format(number.name), out + err
        else:
            # before it was ready for signals, or after its end
            assert process.returncode in (-number, 0), out + err
        for name, content in outputs(folder, stage).items():
            assert name.split("/")[-1].startswith(".") or content == expected[name], f"{name} is half-written"
    finish(Forked(stage_words(stage), folder, ENVIRONMENT))
    assert outputs(folder, stage) == expected
    assert [path for path in folder.rglob("*.tmp") if ".checkpoints" not in path.parts] == []
    assert list(folder.glob(".checkpoints/*.safetensors")) == []


@pytest.fixture(scope="module")
def under_dvc(whole: tuple[Path, dict[str, float]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DVC project whose next stage is `embed`."""
    folder = tmp_path_factory.mktemp("dvc") / "project"
    shutil.copytree(whole[0], folder, ignore=shutil.ignore_patterns("features.parquet", "models", "results", "labels"))
    for name in ("glyphs", "weights"):
        (folder / "data/raw" / name).mkdir(parents=True)
        shutil.copy(ROOT / "data/raw" / name / "README.md", folder / "data/raw" / name)
    for name in ("dvc.yaml", "corrections.csv", "class_names.csv", ".dvcignore"):
        shutil.copy(ROOT / name, folder / name)
    finish(Forked(["-m", "stages.code"], folder, ENVIRONMENT))
    finish(Forked(["-m", "dvc", "init", "--quiet", "--no-scm"], folder, ENVIRONMENT))
    with (folder / ".dvc/config").open("a") as file:
        file.write("    check_update = false\n")
    finish(Forked(["-m", "dvc", "commit", "--quiet", "--force", "code", "images", "manifest"], folder, ENVIRONMENT))
    return folder


@pytest.fixture
def training(under_dvc: Path, tmp_path: Path) -> Iterator[Path]:
    """The same, with a stage that takes minutes; whatever still runs there afterwards is killed."""
    folder = tmp_path / "project"
    shutil.copytree(under_dvc, folder)
    change(folder / "params.yaml", {"embed.epochs": 500})
    yield folder
    for process in running(folder):
        process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals")
@pytest.mark.parametrize(
    ("processes", "number"), [(1, signal.SIGKILL), (2, signal.SIGKILL), (1, signal.SIGTERM), (2, signal.SIGINT)]
)
def test_a_killed_dvc_leaves_nothing_running(training: Path, processes: int, number: signal.Signals) -> None:
    """The signal goes to dvc alone and, as from a keyboard, an interrupt to all that it has started.

    Those that are killed are no forks, since each asks which process has started it; those that go on are.
    """
    change(training / "params.yaml", {"runtime.processes": processes, "embed.tasks_per_step": 2})
    dvc = start(training, "-m", "dvc", "repro", "embed")
    checkpoints = training / ".checkpoints"
    wait_until("a checkpoint", lambda: any(checkpoints.glob("*.safetensors")))
    assert len(running(training)) >= 1 + processes
    if number == signal.SIGINT:
        os.killpg(dvc.pid, number)
    else:
        dvc.send_signal(number)
    out, err = dvc.communicate(timeout=60)
    assert dvc.returncode != 0
    assert "Traceback" not in err, out + err
    if number == signal.SIGINT:
        assert err.count(INTERRUPTED.format("SIGINT")) == 1, out + err
    wait_until("the end of the training", lambda: not running(training), seconds=20)
    assert not (training / "models/initial.safetensors").exists()

    change(training / "params.yaml", {"embed.epochs": 500})
    again = Forked(["-m", "dvc", "repro", "embed"], training, with_forks(ENVIRONMENT), together=True)
    wait_until("the training to go on", lambda: "goes on after" in again.printed())
    again.send_signal(signal.SIGKILL)
    again.communicate()


def begin_guarded(code: str) -> subprocess.Popen[str]:
    """A program that has said that it is ready."""
    process = start(ROOT, "-c", code)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


SLOW = """
import time
from stages.common import guard
guard.PATIENCE = {patience}
guard.guard()
guard.work_begins()
try:
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
finally:
    time.sleep(60)
"""


@pytest.mark.parametrize(("patience", "signals", "status"), [(60, 2, -signal.SIGTERM), (0.5, 1, 130)])
def test_an_end_that_takes_too_long_is_cut_short(patience: float, signals: int, status: int) -> None:
    """By a second signal, or after a while."""
    process = begin_guarded(SLOW.format(patience=patience))
    for number in (signal.SIGINT, signal.SIGTERM)[:signals]:
        process.send_signal(number)
        time.sleep(0.3)
    out, err = process.communicate(timeout=20)
    assert process.returncode == status, out + err
    assert err == INTERRUPTED.format("SIGINT")


SWALLOWING = """
import time
from stages.common import guard
guard.guard()
if {begun}:
    guard.work_begins()
try:
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
except BaseException:
    print("lost", flush=True)
guard.require_no_signal()
"""


@pytest.mark.parametrize("begun", [False, True])
def test_an_end_that_gets_lost(begun: bool) -> None:
    """As in a package that can do without what it imports; before the work begins, nothing has to be tidied."""
    process = begin_guarded(SWALLOWING.format(begun=begun))
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 143
    assert out == ("lost\n" if begun else "")
    assert err == INTERRUPTED.format("SIGTERM")


DESTROYING = """
import time
from stages.common import guard
guard.guard()
guard.work_begins()
class Slow:
    def __del__(self):
        print("ready", flush=True)
        # a signal just before a long sleep would wait for its end
        while True:
            time.sleep(0.05)
class Broken:
    def __del__(self):
        raise ValueError("of its own")
Slow()
Broken()
guard.require_no_signal()
"""


def test_an_end_that_python_ignores_is_told_once() -> None:
    """In a destructor, or while a lock of an import is given back; what else is ignored there is told as ever."""
    process = begin_guarded(DESTROYING)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 143, out + err
    first, *others = err.splitlines(keepends=True)
    assert first == INTERRUPTED.format("SIGTERM")
    assert "SystemExit" not in err
    assert "ValueError: of its own\n" in others


TURNING = """
import time
from stages.common import guard, run
guard.guard()
def main() -> None:
    try:
        print("ready", flush=True)
        while True:
            time.sleep(0.05)
    except BaseException as end:
        raise RuntimeError("cannot make the class") from end
run.run(main)
"""


def test_an_end_that_becomes_an_error_is_told_once() -> None:
    """As Python 3.11 does where a class is being made that has cached properties."""
    process = begin_guarded(TURNING)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 143, out + err
    assert err == INTERRUPTED.format("SIGTERM")


def test_what_the_dead_left_is_deleted(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    path = tmp_path / "a[1].txt"
    here = atomic._machine()
    left, living, foreign = (
        tmp_path / f".a[1].txt.{name}.tmp" for name in (f"{here}-{dead.pid}", f"{here}-{os.getppid()}", f"0-{dead.pid}")
    )
    other = tmp_path / f".b.txt.{here}-{dead.pid}.tmp"
    for file in (left, living, foreign, other):
        file.write_text("half")
    store.write_text(path, "whole")
    assert path.read_text() == "whole"
    assert sorted(tmp_path.iterdir()) == sorted([path, living, foreign, other])


def process(text: str) -> SimpleNamespace:
    """What psutil says of a process with this number and command."""
    pid, *command = text.split()
    return SimpleNamespace(pid=int(pid), name=lambda: command[0], cmdline=lambda: command)


@pytest.mark.parametrize(
    ("alone", "ancestors", "watched"),
    [
        (True, ["9 python -m dvc repro", "8 bash", "1 init"], [9]),
        (True, ["9 fish -c python", "8 python bin/dvc repro", "7 bash", "1 init"], [9, 8]),
        (True, ["9 python notebook.py", "1 init"], [9]),
        (True, ["1 dvc repro"], [1]),
        (True, ["1 python serve.py"], [1]),
        (True, ["1 init"], None),
        (True, [], []),
        (False, ["1 torchrun -m stages.embed"], [1]),
        (False, ["9 python -m stages.embed", "8 dvc repro", "1 init"], [9]),
        (False, [], []),
    ],
)
def test_who_wants_the_results(
    alone: bool, ancestors: list[str], watched: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to dvc, or the launcher of a team, which in a container is the first process; None: nobody any more."""
    monkeypatch.setattr(psutil.Process, "parents", lambda self: [process(text) for text in ancestors])
    left: list[int] = []
    monkeypatch.setattr("stages.common.orphans.os._exit", left.append)
    found = [wanting.pid for wanting in orphans.who_wants_results(alone=alone)]
    assert left == ([] if watched is not None else [1])
    if watched is not None:
        assert found == watched
