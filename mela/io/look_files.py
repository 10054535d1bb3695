"""Write and read how the features of task classes move under other people's looks, where that was measured."""

from pathlib import Path

import numpy as np

from mela.data.array_types import Floats
from mela.errors import MelaError, one_line, raise_if_machine
from mela.io import store


def write_looks(path: Path, covariance: Floats | None) -> None:
    """Write the covariance (m, m) of `mela.models.looks`, or an empty one if there is none."""
    store.write_array(path, np.empty((0, 0)) if covariance is None else covariance)


def read_looks(path: Path, dimensions: int) -> Floats | None:
    """Read the covariance (m, m), of features of m = `dimensions`; None if there is none.

    Raises
    ------
    MelaError
        There is no such file, or it is none of `write_looks`.
    """
    if not path.is_file():
        raise MelaError(f"{path}: no such file; run `dvc repro`, or the stage round, first")
    try:
        found = np.load(path, allow_pickle=False)
    # a damaged header raises almost anything
    except Exception as error:
        raise_if_machine(error, path)
        raise MelaError(f"{path}: expected a covariance (.npy), got {one_line(error)}; rerun the stage round") from None
    if found.dtype != np.float64 or found.shape not in ((0, 0), (dimensions, dimensions)):
        raise MelaError(
            f"{path}: expected a covariance ({dimensions}, {dimensions}) of float64, got {found.shape} of "
            f"{found.dtype}; rerun the stage round"
        )
    if not np.isfinite(found).all():
        raise MelaError(f"{path}: expected finite numbers, got NaN or infinity; rerun the stage round")
    return found if len(found) else None
