"""Files of looks: what is written is read, and what is none is refused in one line."""

from pathlib import Path

import numpy as np
import pytest

from mela.errors import MelaError
from mela.io.look_files import read_looks, write_looks


@pytest.mark.parametrize("covariance", [None, np.eye(3) / 3])
def test_what_is_written_is_read(tmp_path: Path, covariance: np.ndarray | None) -> None:
    write_looks(tmp_path / "looks.npy", covariance)
    found = read_looks(tmp_path / "looks.npy", 3)
    assert (found is None) == (covariance is None)
    if found is not None:
        np.testing.assert_array_equal(found, covariance)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.eye(4), r"expected a covariance \(3, 3\) of float64, got \(4, 4\) of float64"),
        (np.eye(3, dtype=np.float32), r"got \(3, 3\) of float32"),
        (np.full((3, 3), np.nan), "expected finite numbers, got NaN"),
        (np.array([{}]), r"expected a covariance \(\.npy\)"),
        (b"\x93NUMPY", r"expected a covariance \(\.npy\)"),
        (None, "no such file; run `dvc repro`"),
    ],
)
def test_others_are_refused(tmp_path: Path, content: object, message: str) -> None:
    path = tmp_path / "looks.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, np.ndarray):
        np.save(path, content, allow_pickle=True)
    with pytest.raises(MelaError, match=rf"looks\.npy: .*{message}") as caught:
        read_looks(path, 3)
    assert "\n" not in str(caught.value)
