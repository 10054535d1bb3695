"""What is wrong with the machine ends in one line too, and leaves every file as it was: disk, rights, memory."""

import errno
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
import torch

from mela.errors import MelaError, line_of
from mela.io import atomic, feature_tables, store
from mela.models.files import load_model
from mela.params import PARAMS, EmbedParams
from mela.sources.image_files import open_image
from stages.common.training import less_memory
from tests.helpers.bad_input import fails, folders
from tests.helpers.folders import contents, rights_of, without_rights
from tests.helpers.forked import with_forks
from tests.helpers.processes import ENVIRONMENT, python, started
from tests.helpers.project import change, stage_words

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux has these means")


def load_initial(path: Path) -> object:
    return load_model(path, torch.device("cpu"), np.zeros((1, 16, 16, 1), dtype=np.uint8))


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
        ("evaluate", "results/evaluate", 0, "results/evaluate/per_task.parquet"),
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


def test_files_appear_together(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("old")

    def write(*, broken: bool) -> None:
        with atomic.together():
            for path in (first, second):
                with atomic.replacing(path) as temporary:
                    temporary.write_text("new")
                assert not second.exists()
                assert first.read_text() == "old"
            if broken:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(broken=True)
    assert list(tmp_path.iterdir()) == [first]
    write(broken=False)
    assert sorted(tmp_path.iterdir()) == [first, second]
    assert first.read_text() == second.read_text() == "new"


def test_files_of_a_block_within_another_appear_with_those_of_that(tmp_path: Path) -> None:
    def write(*, broken: bool) -> None:
        with atomic.together():
            with atomic.together():
                store.write_text(tmp_path / "inner", "new")
            assert not (tmp_path / "inner").exists()
            store.write_text(tmp_path / "outer", "new")
            if broken:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write(broken=True)
    assert not list(tmp_path.iterdir())
    write(broken=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inner", "outer"]


def test_what_an_inner_block_wrote_before_its_error_does_not_appear(tmp_path: Path) -> None:
    def broken() -> None:
        with atomic.together():
            store.write_text(tmp_path / "broken", "new")
            raise KeyError

    with atomic.together():
        store.write_text(tmp_path / "before", "new")
        with pytest.raises(KeyError):
            broken()
        store.write_text(tmp_path / "after", "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["after", "before"]


def test_a_signal_waits_until_all_files_have_appeared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        signal.raise_signal(signal.SIGINT)
        return plain(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    handler = signal.getsignal(signal.SIGINT)

    def write() -> None:
        with atomic.together():
            for name in ("a", "b", "c"):
                store.write_text(tmp_path / name, "new")

    with pytest.raises(KeyboardInterrupt):
        write()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]
    assert signal.getsignal(signal.SIGINT) is handler


MEMORY = "error: out of memory: {}: .*; use a machine with more, .*"
REPLACE = "expected a readable image; replace the file"
FILES = "error: {}: Too many open files; raise the number of open files .*"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (MemoryError(), MEMORY),
        (pa.ArrowMemoryError("malloc of size 1536 failed"), MEMORY),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), MEMORY),
        (OSError(errno.EMFILE, "Too many open files", "pandas_compat.py"), FILES),
        (OSError(errno.EIO, "Input/output error"), "error: {}: Input/output error; check the disk"),
    ],
    ids=["memory", "arrow", "errno", "files", "disk"],
)
@pytest.mark.parametrize(
    ("path", "opens", "read"),
    [
        ("data/images/images.npy", "mela.io.store.np.lib.format.open_memmap", store.open_images),
        ("data/features.parquet", "mela.io.store.pq.ParquetFile", feature_tables.read_features),
        ("models/initial.safetensors", "mela.io.tensors.read_tensors", load_initial),
        ("picture.png", "mela.sources.image_files.Image.open", lambda path: open_image(path, "picture")),
    ],
    ids=["images", "table", "model", "picture"],
)
def test_the_machine_is_not_mistaken_for_a_damaged_file(
    path: str,
    opens: str,
    read: Callable[[Path], object],
    error: Exception,
    line: str,
    copied: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opens, Mock(side_effect=error))
    with pytest.raises((MemoryError, OSError)) as caught:
        read(Path(path))
    said = line_of(caught.value)
    assert said is not None
    assert re.fullmatch(line.format(path), said), said


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.EIO, "x", "a\nb\x1b[31m.npy"), r"error: a\nb\x1b[31m.npy: Input/output error; check the disk"),
        (MelaError("data.root: 'mine\x1b[31m'"), r"error: data.root: 'mine\x1b[31m'"),
        (OSError(errno.EXDEV, "x", "é"), "error: é: Invalid cross-device link; check the file and the machine"),
        (MelaError(f"image 'out of memory.png': {REPLACE}"), f"error: image 'out of memory.png': {REPLACE}"),
        (RuntimeError("a defect"), None),
    ],
)
def test_what_is_said_of_an_error(error: Exception, line: str | None) -> None:
    """One line of what can be printed, whatever files are called."""
    assert line_of(error) == line


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


@pytest.mark.parametrize("name", ["/dev/null", "/dev/a-new-name.csv", "pipe", "link", "", "/"])
def test_a_file_takes_no_place_of_a_device(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root could rename a file to /dev/null, and all programs of the machine would miss it."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("link").symlink_to("/dev/null")
    # what would go wrong must not go wrong here
    monkeypatch.setattr(Path, "replace", lambda *_: pytest.fail("the place was taken"))
    with (
        pytest.raises(MelaError, match=r"^.*: expected the name of a file, got a .*; give another name$"),
        atomic.replacing(Path(name)) as temporary,
    ):
        pytest.fail(f"asked to write {temporary}")


def test_shared_memory_is_no_device(tmp_path: Path) -> None:
    place = Path("/dev/shm") / f"mela-{os.getpid()}"
    if not place.parent.is_dir():
        pytest.skip("there is no /dev/shm")
    try:
        store.write_text(place, "new")
        assert place.read_text() == "new"
    finally:
        place.unlink(missing_ok=True)


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
        advice = f"{parts}lower data.size or model.width, or use a machine with more"
        fails(stage, f"{stage}: out of memory: .*; {advice}", monkeypatch, capfd)


def test_advice_for_one_task_at_a_time(copied: Path) -> None:
    """There is nothing to divide."""
    advice = less_memory(EmbedParams.read(), "tasks_per_step")
    assert advice == "lower data.size or model.width, or use a machine with more"


def test_threads_that_memory_is_too_small_for_are_no_damaged_file(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError("Unknown error: Failed to launch worker thread: Resource temporarily unavailable")
    monkeypatch.setattr("mela.io.store.pq.ParquetFile", Mock(side_effect=error))
    with pytest.raises(MemoryError, match=r"^data/features.parquet: .*worker thread"):
        feature_tables.read_features(Path("data/features.parquet"))


@LINUX
@pytest.mark.parametrize("work", ["np.ones(2**33)", "import torch; torch.ones(2**33)"], ids=["numpy", "torch"])
def test_a_lack_of_memory(work: str, copied: Path) -> None:
    ended = python("-c", LITTLE.format(work=work))
    assert ended.returncode == 1
    assert re.fullmatch(r"error: out of memory: .*; use a machine with more, lower data.size, .*\n", ended.stderr)


def test_any_other_error_keeps_its_traceback() -> None:
    done = python("-c", "from stages.common.run import run\ndef main(): raise RuntimeError('a defect')\nrun(main)")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("RuntimeError: a defect\n")
