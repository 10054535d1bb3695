"""Pickles of arrays are read whoever wrote them, and nothing else comes of a pickle."""

import io
import pickle
from typing import Any

import numpy as np
import pytest

from mela.errors import MelaError
from mela.sources.array_pickles import image_array, unpickle, whole_numbers

ARRAYS: dict[str, np.ndarray] = {
    "images": np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "text": np.array(["ab", "c", "\u00e9"]),
    "bytes": np.array([b"ab", b"c"]),
    "objects": np.array([1, "x", None, [2]], dtype=object),
    "the other order": np.arange(3, dtype=">i4"),
    "nothing": np.empty((0, 3)),
    "flags": np.array([True, False]),
    "a number": np.array(3),
}


def again(content: object, protocol: int = 4) -> dict[str, Any]:
    return unpickle(io.BytesIO(pickle.dumps(content, protocol)), "file")


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_and_numbers_are_what_they_were(protocol: int) -> None:
    found = again(ARRAYS | {"numbers": [np.int64(3), np.float32(2.5), np.uint8(7), np.bool_(True)]}, protocol)
    assert found.pop("numbers") == [3, 2.5, 7, True]
    for name, array in ARRAYS.items():
        own = found[name]
        assert isinstance(own, np.ndarray)
        # NumPy reads arrays into the order of the machine
        assert own.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
        assert own.flags.f_contiguous == array.flags.f_contiguous
        np.testing.assert_array_equal(own, array)


class Asks:
    """An object that is pickled as a call and a state, whatever they do."""

    def __init__(self, call: Any, arguments: tuple[Any, ...], *state: Any) -> None:
        self.asked = (call, arguments, *state)

    def __reduce__(self) -> Any:
        return self.asked


RECONSTRUCT, SCALAR = np.empty(0).__reduce__()[0], np.float64(0).__reduce__()[0]
FROM_BUFFER = np.empty(0).__reduce_ex__(5)[0]
# a dtype of objects that denies that it has any, so that eight bytes are taken for the address of one
ADDRESSES = Asks(np.dtype, ("O8", False, True), (3, "|", None, None, None, -1, -1, 0))
FIELDS = Asks(np.dtype, ("V8", False, True), (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0))
NUMBERS = Asks(np.dtype, ("u1", False, True), (3, "|", None, ("a",), {"a": (np.dtype("O"), 0)}, 8, 1, 0))


@pytest.mark.parametrize(
    "content",
    [
        Asks(RECONSTRUCT, (np.ndarray, (0,), b"b"), (1, (1,), ADDRESSES, False, b"AAAAAAAA")),
        Asks(RECONSTRUCT, (np.ndarray, (0,), b"b"), (1, (1,), np.dtype("u1"), False, [object])),
        Asks(RECONSTRUCT, (np.matrix, (0,), b"b")),
        Asks(FROM_BUFFER, (b"AAAAAAAA", ADDRESSES, (1,), "C")),
        Asks(FROM_BUFFER, (b"AAAAAAAA", FIELDS, (1,), "C")),
        Asks(FROM_BUFFER, (b"AAAAAAAA", NUMBERS, (8,), "C")),
        Asks(SCALAR, (ADDRESSES, b"AAAAAAAA")),
        Asks(SCALAR, (np.dtype("u1"), b"")),
        Asks(np.ndarray, ((1,), ADDRESSES, b"AAAAAAAA")),
        Asks(np.dtype, ("u1,O", False, True)),
        Asks(np.dtype, ((np.void, 8), False, True)),
        Asks(RECONSTRUCT, (np.ndarray, (0,), b"b"), (1, (5,), np.dtype("f8"), False, b"few")),
        Asks(eval, ("1",)),
    ],
)
@pytest.mark.parametrize("protocol", [2, 4])
def test_nothing_else_comes_of_a_pickle(content: object, protocol: int) -> None:
    with pytest.raises(MelaError, match=r"^file: expected a pickle of arrays, got .*; fetch it again$") as caught:
        again({"labels": content}, protocol)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("target", [b"cnumpy.core.numeric\n_frombuffer\n", b"cnumpy\ndtype\n", b"cnumpy\nndarray\n"])
def test_a_pickle_cannot_change_what_makes_arrays(target: bytes) -> None:
    """BUILD with a state of two parts sets attributes."""
    state = b"(N}(U\x0c__defaults__K\x01ut"
    with pytest.raises(MelaError, match="expected a pickle of arrays"):
        unpickle(io.BytesIO(b"\x80\x02}(U\x01a" + target + state + b"bu."), "file")


def test_too_little_memory_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(own: object) -> None:
        raise MemoryError

    monkeypatch.setattr("mela.sources.array_pickles._Unpickler.load", load)
    with pytest.raises(MemoryError):
        unpickle(io.BytesIO(b""), "file")


@pytest.mark.parametrize("values", [[1.5], [[1], [1, 2]], [[1, 2]], ["a"], [None], {"a": 1}, None, 3, [float("nan")]])
def test_what_is_no_list_of_whole_numbers(values: Any) -> None:
    with pytest.raises(MelaError, match=r"^file: expected labels as whole numbers \(n,\), got .*; fetch it again$"):
        whole_numbers(values, "file", "labels")


def test_whole_numbers() -> None:
    for values in ([1, 0], np.array([1, 0], dtype=np.uint8), (1, 0)):
        assert whole_numbers(values, "file", "labels").tolist() == [1, 0]


@pytest.mark.parametrize("shape", [(2, 3, 3), (2, 3, 3, 1), (2, 0, 3, 3), (2, 3, 0, 3)])
def test_what_are_no_images(shape: tuple[int, ...]) -> None:
    with pytest.raises(MelaError, match=r"^file: expected images, uint8 \(n, h, w, 3\), got uint8 \(2, .*; fetch it a"):
        image_array(np.zeros(shape, np.uint8), "file")
