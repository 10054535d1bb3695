"""What is said of an error, and that errors of the machine are not taken for damaged files."""

import errno
import re
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest
import torch

from mela.errors import MelaError, line_of
from mela.io import feature_tables, store
from mela.models.files import load_model
from mela.sources.image_files import open_image


def load_initial(path: Path) -> object:
    return load_model(path, torch.device("cpu"), np.zeros((1, 16, 16, 1), dtype=np.uint8))


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


def test_threads_that_memory_is_too_small_for_are_no_damaged_file(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = OSError("Unknown error: Failed to launch worker thread: Resource temporarily unavailable")
    monkeypatch.setattr("mela.io.store.pq.ParquetFile", Mock(side_effect=error))
    with pytest.raises(MemoryError, match=r"^data/features.parquet: .*worker thread"):
        feature_tables.read_features(Path("data/features.parquet"))
