"""Read pickles of arrays, lists and text, as benchmarks are published, without running what a pickle may ask for.

A pickle gets none of NumPy's own classes and functions. Even these alone would do harm: a pickled dtype may say that
the bytes of an array are addresses of objects. Stand-ins take their place, which make arrays of numbers and of text.
"""

import pickle
import re
import warnings
from pathlib import Path
from typing import IO, Any

import numpy as np

from mela.data.array_types import AnyArray, Images, Ints
from mela.errors import MelaError, one_line, raise_if_machine

NUMBERS, TEXTS = "biuf", "SU"
CODE = re.compile(rf"[{NUMBERS}{TEXTS}O]\d{{0,4}}")


class _Array(np.ndarray[Any, Any]):
    """Become what a pickle says of an array, of numbers, text or objects."""

    def __setstate__(self, state: Any) -> None:
        """Take the version of the state, the shape, the type, the order, and bytes or a list of objects."""
        version, shape, kind, by_columns, content = state
        # given a dtype that does not lie, NumPy itself refuses bytes for objects
        super().__setstate__((version, shape, _plain(kind), by_columns, content))


class _Type:
    """Stand for a dtype of numbers, text or objects, once a pickle has said what it is."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "="

    def __setstate__(self, state: Any) -> None:
        """Take the byte order, and nothing that would make another type of it."""
        _, order, *others = state
        if order not in ("<", ">", "|", "=") or any(other is not None for other in others[:3]):
            raise pickle.UnpicklingError(f"a dtype of several fields, {state!r}, is no part of an array")
        self.order = order


class _NumPy:
    """Stand for something of NumPy's; it has no attributes that a pickle could change."""

    __slots__ = ()


class _ArrayClass(_NumPy):
    __slots__ = ()


class _TypeClass(_NumPy):
    __slots__ = ()

    def __call__(self, code: Any, *_: Any) -> _Type:
        if not isinstance(code, str) or not CODE.fullmatch(code):
            raise pickle.UnpicklingError(f"the dtype {code!r} is no part of an array")
        return _Type(code)


class _Reconstruct(_NumPy):
    __slots__ = ()

    def __call__(self, kind: Any, *_: Any) -> _Array:
        if not isinstance(kind, _ArrayClass):
            raise pickle.UnpicklingError(f"{type(kind).__name__} is no array")
        return np.empty(0, dtype=np.uint8).view(_Array)


class _FromBuffer(_NumPy):
    __slots__ = ()

    def __call__(self, content: Any, kind: Any, shape: Any, order: Any) -> AnyArray:
        return np.frombuffer(content, dtype=_plain(kind, NUMBERS + TEXTS)).reshape(shape, order=order)


class _Scalar(_NumPy):
    __slots__ = ()

    def __call__(self, kind: Any, content: Any) -> Any:
        as_bytes = content.encode("latin1") if isinstance(content, str) else content
        return np.frombuffer(as_bytes, dtype=_plain(kind, NUMBERS))[0].item()


class _NoBytes(_NumPy):
    """How Python 3 writes that there are none, for Python 2."""

    __slots__ = ()

    def __call__(self) -> bytes:
        return b""


class _Encode(_NumPy):
    """How Python 3 writes bytes for Python 2."""

    __slots__ = ()

    def __call__(self, text: Any, encoding: Any) -> bytes:
        if not isinstance(text, str) or encoding != "latin1":
            raise pickle.UnpicklingError(f"{type(text).__name__} in {encoding!r} is no part of an array")
        return text.encode("latin1")


def _plain(kind: Any, kinds: str = NUMBERS + TEXTS + "O") -> np.dtype[Any]:
    """Return the dtype that a stand-in stands for, if it is of some kinds."""
    if not isinstance(kind, _Type) or kind.code[0] not in kinds:
        raise pickle.UnpicklingError(f"{kind.code if isinstance(kind, _Type) else type(kind).__name__} is no number")
    return np.dtype(kind.code).newbyteorder(kind.order)  # type: ignore[arg-type]


KNOWN: dict[tuple[str, str], _NumPy] = {
    ("numpy", "ndarray"): _ArrayClass(),
    ("numpy", "dtype"): _TypeClass(),
    ("_codecs", "encode"): _Encode(),
    ("__builtin__", "bytes"): _NoBytes(),
}
# as NumPy 1 calls them, and so the published files, and NumPy 2
for core in ("numpy.core", "numpy._core"):
    KNOWN |= {
        (f"{core}.multiarray", "_reconstruct"): _Reconstruct(),
        (f"{core}.multiarray", "scalar"): _Scalar(),
        (f"{core}.numeric", "_frombuffer"): _FromBuffer(),
    }


class _Unpickler(pickle.Unpickler):
    """Make arrays and plain Python values, but nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for something that a pickle names, if it belongs to an array."""
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
    # what a damaged pickle raises is anything
    except Exception as error:
        raise_if_machine(error, where)
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


def whole_numbers(values: Any, where: str, what: str) -> Ints:
    """Return whole numbers (n,), from a list or an array.

    Raises
    ------
    MelaError
        They are something else.
    """
    try:
        # a list of rows of different lengths makes no array
        found = np.asarray(values)
    except ValueError:
        found = np.empty((0, 0))
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise MelaError(f"{where}: expected {what} as whole numbers (n,), got {_said(values)}; fetch it again")
    return found.astype(np.int64)


def image_array(values: Any, where: str) -> Images:
    """Return images, uint8 (n, h, w, 3).

    Raises
    ------
    MelaError
        They are something else.
    """
    is_array = isinstance(values, np.ndarray)
    if not is_array or values.dtype != np.uint8 or values.ndim != 4 or values.shape[3] != 3 or 0 in values.shape[1:]:
        raise MelaError(f"{where}: expected images, uint8 (n, h, w, 3), got {_said(values)}; fetch it again")
    found: Images = values.view(np.ndarray)
    return found


def _said(values: Any) -> str:
    return f"{values.dtype} {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
