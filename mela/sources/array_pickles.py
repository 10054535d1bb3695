"""Read pickles of arrays, lists and text, as benchmarks are published, without running what a pickle may ask for."""

import _codecs
import pickle
import warnings
from pathlib import Path
from typing import IO, Any

import numpy as np

from mela.errors import MelaError, one_line

RECONSTRUCT = np.empty(0).__reduce__()[0]
SCALAR = np.float64(0).__reduce__()[0]
FROM_BUFFER = np.empty(0).__reduce_ex__(5)[0]
KNOWN = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    # how Python 3 pickles bytes for Python 2
    ("_codecs", "encode"): _codecs.encode,
    # as NumPy 1 calls them, and so the published files, and NumPy 2
    **{(f"numpy.{core}.multiarray", "_reconstruct"): RECONSTRUCT for core in ("core", "_core")},
    **{(f"numpy.{core}.multiarray", "scalar"): SCALAR for core in ("core", "_core")},
    **{(f"numpy.{core}.numeric", "_frombuffer"): FROM_BUFFER for core in ("core", "_core")},
}


class _Unpickler(pickle.Unpickler):
    """Make arrays and plain Python values, but nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what a pickle names, if it belongs to an array."""
        try:
            return KNOWN[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of an array") from None


def unpickle(file: IO[bytes], where: str) -> dict[str, Any]:
    """Return a dictionary of arrays, lists and text, as Python 2 or 3 wrote it.

    Raises
    ------
    MelaError
        The bytes are no such dictionary.
    """
    try:
        with warnings.catch_warnings():
            # NumPy 2.4.0 to 2.4.4 warn of pickles as old as these
            warnings.simplefilter("ignore", np.exceptions.VisibleDeprecationWarning)
            found = _Unpickler(file, encoding="latin1").load()
    except MemoryError:
        raise
    # what a damaged pickle raises is anything
    except Exception as error:
        raise MelaError(f"{where}: expected a pickle of arrays, got {one_line(error)}; fetch it again") from None
    if not isinstance(found, dict):
        raise MelaError(f"{where}: expected a pickle of a dictionary, got {type(found).__name__}; fetch it again")
    return found


def read_pickle(path: Path, *keys: str) -> dict[str, Any]:
    """Return a pickled dictionary that has some keys.

    Raises
    ------
    MelaError
        The file is no such dictionary, or lacks a key.
    """
    with path.open("rb") as file:
        found = unpickle(file, str(path))
    for key in keys:
        if key not in found:
            there = ", ".join(map(repr, found)) or "nothing"
            raise MelaError(f"{path}: expected {', '.join(map(repr, keys))} in it, got {there}; fetch it again")
    return found
