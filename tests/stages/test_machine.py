"""What is wrong with the machine ends in one line too, and leaves every file as it was: disk, rights, memory."""

import errno
import re
import shlex
import shutil
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from mela.params import PARAMS, EmbedParams
from stages.common.training_setup import less_memory
from tests.helpers.bad_input import fails, folders
from tests.helpers.folders import contents, rights_of, without_rights
from tests.helpers.forked import with_forks
from tests.helpers.processes import ENVIRONMENT, python, started
from tests.helpers.project import change, stage_words

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux has these means")
FREE = "No space left on device; free some space and run the same command again"
RIGHTS = "Permission denied; check who may read and write it"
# a disk of its own for a folder, with `room` bytes left beside what was there
FULL = """
mount -t tmpfs -o size=4m tmpfs "$FOLDER" && cp -a kept/. "$FOLDER" || exit 77
dd if=/dev/zero of="$FOLDER/filler" bs=4k 2> /dev/null
truncate -s "-$ROOM" "$FOLDER/filler"
python -m tests.helpers.restricted $$ $STAGE
status=$?
rm "$FOLDER/filler"
diff -r kept "$FOLDER" >&2 || exit 78
exit $status
"""


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize(
    ("stage", "folder", "room", "file"),
    [
        ("images", "data/images", 0, "data/images/images.npy"),
        ("images", "data/images", 760_000, "data/images/index.parquet"),
        ("embed", "models", 0, "models/initial.safetensors"),
        ("embed", ".checkpoints", 0, r".checkpoints/embed-\w+.safetensors"),
        ("extract", "data", 8_192, "data/features.parquet"),
        ("label", "models", 0, "models/labelers/pruned/arrays.safetensors"),
        ("label", "results/label", 4_096, "results/label/passes.csv"),
        ("pretrain@merged", "results/pretrain", 4_096, "results/pretrain/merged.json"),
        ("pretrain@kmeans", "models", 0, "models/kmeans.safetensors"),
        ("evaluate", "results/evaluate", 0, "results/evaluate/predictions.parquet"),
        ("report", "results/report", 20_480, r"results/report/\w+.png"),
    ],
)
def test_a_full_disk(stage: str, folder: str, room: int, file: str, copied: Path) -> None:
    """A real one: whatever part of the outputs finds room, none of them changes."""
    change(PARAMS, {"runtime.checkpoint_seconds": 0 if folder == ".checkpoints" else 60})
    Path(folder).mkdir(exist_ok=True)
    shutil.copytree(folder, "kept")
    before = contents(Path())
    variables = [f"FOLDER={folder}", f"ROOM={room}", f"STAGE={shlex.join(stage_words(stage)[1:])}"]
    words = ["unshare", "--mount", "--map-root-user", "env", *variables, "sh", "-c", FULL]
    ended = started(*words, **with_forks(ENVIRONMENT))
    if ended.returncode == 77 or "unshare" in ended.stderr:
        pytest.skip(f"a disk cannot be mounted here: {ended.stderr}")
    assert re.fullmatch(f"error: {file}: {FREE}\n", ended.stderr), ended.stderr
    assert ended.returncode == 1
    assert contents(Path()) == before


@pytest.mark.parametrize("number", range(9))
def test_any_write_may_fail(
    number: int, copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The last of nine outputs cannot be synced, or an earlier one: none of them changes."""
    change(PARAMS, {"labeler.q": 5.0})
    sync = Mock(side_effect=[None] * number + [OSError(errno.EIO, "Input/output error")])
    monkeypatch.setattr("mela.io.atomic.os.fsync", sync)
    fails("label", r"\w+/.*: Input/output error; check the disk", monkeypatch, capfd)
    assert sync.call_count == number + 1


def test_a_folder_in_the_place_of_a_file(
    copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("results/label/pruned_sizes.csv").unlink()
    Path("results/label/pruned_sizes.csv").mkdir()
    change(PARAMS, {"labeler.q": 5.0})
    fails("label", "results/label/pruned_sizes.csv: Is a directory; move what is there away", monkeypatch, capfd)


def test_a_file_for_a_folder(copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree("models")
    Path("models").write_text("")
    fails(
        "label",
        "models(/labelers(/pruned)?)?: (File exists|Not a directory); move what is there away",
        monkeypatch,
        capfd,
    )


def stage_without(rights: int, target: Path, stage: str) -> str:
    """What a stage says, which ends with status 1 since a user has only these rights for a file or folder."""
    with rights_of(target, rights):
        ended = without_rights(*stage_words(stage)[1:])
    assert ended.returncode == 1
    return ended.stderr


@pytest.mark.slow
@LINUX
@pytest.mark.parametrize(
    ("stage", "path", "mode", "file"),
    [
        ("label", "params.yaml", 0, "params.yaml"),
        ("label", "data/features.parquet", 0, "data/features.parquet"),
        ("label", "results/label", 0o500, "results/label/pruned.json"),
        ("label_merged", "results/label", 0o500, "results/label/merged.json"),
        ("label", "data/labels", 0, "data/labels/pruned.parquet"),
        ("embed", "data/images/images.npy", 0, "data/images/images.npy"),
        ("embed", "models", 0o500, "models/initial.safetensors"),
        ("embed", ".checkpoints", 0o500, r".checkpoints/embed-\w+.safetensors"),
        ("extract", "models/initial.safetensors", 0, "models/initial.safetensors"),
        ("pretrain@merged", "data/labels/merged.parquet", 0, "data/labels/merged.parquet"),
        ("report", "results/label/passes.csv", 0, "results/label/passes.csv"),
        ("report", "results/report", 0o500, "results/report/summary.md"),
    ],
)
def test_a_lack_of_rights(stage: str, path: str, mode: int, file: str, copied: Path) -> None:
    change(PARAMS, {"runtime.checkpoint_seconds": 0 if path == ".checkpoints" else 60})
    if path == ".checkpoints":
        Path(path).mkdir()
    before = contents(Path())
    said = stage_without(mode, Path(path), stage)
    assert re.fullmatch(f"error: {file}: {RIGHTS}\n", said), said
    assert contents(Path()) == before


@LINUX
@pytest.mark.parametrize("path", ["mine/class 0/1.png", "mine/class 0"])
def test_images_that_must_not_be_read(path: str, project: Path) -> None:
    folders()()
    said = stage_without(0, Path(path), "images")
    assert re.fullmatch(f"error: .*{path}: {RIGHTS}\n", said), said
    assert not Path("data/images").exists() or not any(Path("data/images").iterdir())


LITTLE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2**35, 2**35))
sys.argv = ["stages/pretrain.py"]
from stages.common.run import run
def main():
    import numpy as np
    {work}
run(main)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("could not create a primitive"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("unable to mmap 123 bytes from file: Cannot allocate memory (12)"),
        RuntimeError("can't start new thread"),
    ],
    ids=str,
)
def test_too_little_memory_in_a_training_names_the_parameters(
    error: Exception, copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    change(PARAMS, {"embed.tasks_per_step": 4})
    change(PARAMS, {"rounds.first": True})
    for train in ("stages.embed.train_embedding", "stages.common.pretraining.pretrain"):
        monkeypatch.setattr(train, Mock(side_effect=error))
    of_labels = r"raise pretrain.accumulate \(now 1\), lower pretrain.batch_size \(now \d+\), "
    for stage, parts in {
        "embed": r"raise embed.accumulate \(now 1\), lower embed.tasks_per_step \(now 4\), ",
        "pretrain@merged": of_labels,
        "round@first": of_labels,
    }.items():
        advice = f"{parts}lower data.image_size or model.width, or use a machine with more"
        fails(stage, f"{stage}: out of memory: .*; {advice}", monkeypatch, capfd)


def test_advice_for_one_task_at_a_time(copied: Path) -> None:
    """There is nothing to divide."""
    advice = less_memory(EmbedParams.read(), "tasks_per_step")
    assert advice == "lower data.image_size or model.width, or use a machine with more"


@LINUX
@pytest.mark.parametrize("work", ["np.ones(2**33)", "import torch; torch.ones(2**33)"], ids=["numpy", "torch"])
def test_a_lack_of_memory(work: str, copied: Path) -> None:
    ended = python("-c", LITTLE.format(work=work))
    assert ended.returncode == 1
    assert re.fullmatch(r"error: out of memory: .*; use a machine with more, lower data.image_size, .*\n", ended.stderr)


def test_any_other_error_keeps_its_traceback() -> None:
    done = python("-c", "from stages.common.run import run\ndef main(): raise RuntimeError('a defect')\nrun(main)")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("RuntimeError: a defect\n")
