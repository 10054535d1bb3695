"""Open tieredImageNet (Ren et al., 2018) in the forms that people have.

There are 351 train, 97 val and 160 test classes. Images are read one at a time, since all of them need 16 GB.
"""

import pickletools
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from mela.data.array_types import Images
from mela.errors import MelaError, one_line, raise_if_machine
from mela.io.schemas import SPLITS
from mela.sources.array_pickles import read_pickle, whole_numbers
from mela.sources.benchmarks import split_of_classes
from mela.sources.forms import Benchmark, Form, Opened, class_folders, has_half
from mela.sources.image_files import decoded

NAME = "tiered_imagenet"
PNG, ARRAYS, LABELS = "{}_images_png.pkl", "{}_images.npz", "{}_labels.pkl"
SIGNATURES = (b"\x89PNG", b"\xff\xd8\xff")
# bytes of an operation before those of its argument
HEADERS = {"BINSTRING": 5, "SHORT_BINSTRING": 2, "BINBYTES": 5, "SHORT_BINBYTES": 2, "BINBYTES8": 9, "BYTEARRAY8": 9}
Reader = Callable[[int], Image.Image]


def _files(images: str) -> Callable[[Path], Iterator[str]]:
    def needed(root: Path) -> Iterator[str]:
        del root
        yield from (name.format(split) for split in SPLITS for name in (images, LABELS))

    return needed


def _from_files(images: str, read: Callable[[Path], tuple[int, Reader]]) -> Callable[[Path], Opened]:
    """Return what opens a file of images and one of labels for each split."""

    def open_files(root: Path) -> Opened:
        published = [*split_of_classes(NAME).values()]
        split_of: dict[str, str] = {}
        sources_of: dict[str, list[str]] = {}
        readers: dict[str, Reader] = {}
        for split in SPLITS:
            path = root / images.format(split)
            labels = _labels(root / LABELS.format(split))
            count, readers[split] = read(path)
            if count != len(labels):
                raise MelaError(
                    f"{path}: expected {len(labels):,} images, as {LABELS.format(split)} has labels, got {count:,}; "
                    "fetch both again"
                )
            numbers = np.unique(labels)
            if len(numbers) != published.count(split):
                raise MelaError(
                    f"{root / LABELS.format(split)}: expected {published.count(split)} classes, got {len(numbers)}; "
                    "fetch it again"
                )
            for number in numbers.tolist():
                label = f"{split} {number:03d}"
                split_of[label] = split
                sources_of[label] = [f"{split}/{row:06d}" for row in np.flatnonzero(labels == number).tolist()]

        def open_source(source: str) -> Image.Image:
            split, _, row = source.partition("/")
            return readers[split](int(row))

        return split_of, sources_of, open_source

    return open_files


def _labels(path: Path) -> npt.NDArray[np.int64]:
    """Return the number of each image's class (n,); copies of the file differ in what they call it."""
    found = read_pickle(path)
    key = "labels" if "labels" in found else "label_specific"
    if key not in found:
        raise MelaError(
            f"{path}: expected 'labels' or 'label_specific' in it, got {', '.join(map(repr, found)) or 'nothing'}; "
            "fetch it again"
        )
    return whole_numbers(found[key], str(path), "labels")


def _pickled_images(path: Path) -> tuple[int, Reader]:
    """Return how many encoded images a pickle holds, and what reads one; nothing is unpickled."""
    starts, lengths, as_text = [], [], []
    try:
        with path.open("rb") as file:
            for operation, argument, place in pickletools.genops(file):
                # Python 3 writes bytes for Python 2 as text
                is_text = operation.name == "BINUNICODE"
                if place is None or not isinstance(argument, (str, bytes, bytearray)):
                    continue
                if not is_text and operation.name not in HEADERS:
                    continue
                first = argument[:4].encode("latin1", "replace") if isinstance(argument, str) else bytes(argument[:4])
                if first.startswith(SIGNATURES):
                    starts.append(place + (HEADERS["BINBYTES"] if is_text else HEADERS[operation.name]))
                    lengths.append(len(argument.encode() if isinstance(argument, str) and is_text else argument))
                    as_text.append(is_text)
    # what a damaged pickle raises is anything
    except (ValueError, EOFError, UnicodeDecodeError) as error:
        raise MelaError(f"{path}: expected a pickle of PNG images, got {one_line(error)}; fetch it again") from None

    def read(row: int) -> Image.Image:
        with path.open("rb") as file:
            file.seek(starts[row])
            content = file.read(lengths[row])
        if as_text[row]:
            content = content.decode().encode("latin1", "replace")
        return decoded(content, f"{path}: {row}")

    return len(starts), read


def _arrays(path: Path) -> tuple[int, Reader]:
    """Return how many images an archive of NumPy holds, and what reads one; they stay on disk."""
    images = _mapped(path)

    def read(row: int) -> Image.Image:
        # OpenCV, which the authors read images with, has blue first
        return Image.fromarray(np.ascontiguousarray(images[row][..., ::-1]))

    return len(images), read


def _mapped(path: Path) -> Images:
    """Return the array ``images`` of an archive as a map of the file."""
    try:
        start, shape, dtype = _place_in(path)
        if dtype != np.uint8 or len(shape) != 4 or shape[3] != 3 or 0 in shape[1:]:
            raise MelaError(f"{path}: expected images, uint8 (n, h, w, 3), got {dtype} {shape}; fetch it again")
        return np.memmap(path, dtype=np.uint8, mode="r", offset=start, shape=shape)
    except MelaError:
        raise
    # what a damaged archive raises is anything
    except Exception as error:
        raise_if_machine(error, path)
        raise MelaError(
            f"{path}: expected an archive of NumPy with the array 'images', got {one_line(error)}; fetch it again"
        ) from None


def _place_in(path: Path) -> tuple[int, tuple[int, ...], Any]:
    """Return where the values of the array ``images`` of an archive begin, and the array's shape and dtype."""
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo("images.npy")
        if member.compress_type != zipfile.ZIP_STORED:
            raise MelaError(
                f"{path}: expected images that are not compressed, so that they can stay on disk, got compressed ones; "
                f"store them anew by numpy.savez, or use {PNG.format(path.name.partition('_')[0])}"
            )
        with archive.open(member) as file:
            np.lib.format.read_magic(file)
            # the other versions are for headers that images do not have
            shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
            header = file.tell()
    if by_columns:
        raise MelaError(f"{path}: expected images row by row, got them in the order of Fortran; store them anew")
    with path.open("rb") as file:
        # the lengths of name and extra field of the member, which precede its content
        file.seek(member.header_offset + 26)
        name, extra = np.frombuffer(file.read(4), dtype="<u2").tolist()
    return member.header_offset + 30 + name + extra + header, shape, dtype


TIERED_IMAGENET = Benchmark(
    name=NAME,
    title="tieredImageNet",
    preset=NAME,
    forms=(
        Form(
            title="train_images_png.pkl and train_labels.pkl, and so for val and test",
            needed=_files(PNG),
            open=_from_files(PNG, _pickled_images),
            is_sure=has_half(_files(PNG)),
        ),
        Form(
            title="train_images.npz and train_labels.pkl, and so for val and test",
            needed=_files(ARRAYS),
            open=_from_files(ARRAYS, _arrays),
            is_sure=has_half(_files(ARRAYS)),
        ),
        class_folders(NAME),
    ),
    of_split={"train": 448_695, "val": 124_261, "test": 206_209},
)
