"""Read the lists of images that come with data sets: their classes, and boxes around what they show."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil, floor
from pathlib import Path

import numpy as np
from PIL import Image

from mela.errors import MelaError
from mela.io.text_tables import read_text
from mela.sources.image_files import list_images

# left, top, right and bottom in pixels
Box = tuple[float, float, float, float]
FETCH = "fetch it again"


def home_in(root: Path, homes: Sequence[str]) -> str:
    """Return the first of some folders, each with a ``/`` behind, that is below `root`; else the empty text."""
    return next((home for home in homes if (root / home).is_dir()), "")


def read_list(path: Path) -> dict[str, str]:
    """Read a list whose lines are an image, a blank, and what is said of the image.

    Raises
    ------
    MelaError
        There is no such file, a line is not of this form, or an image has two lines; names the line.
    """
    found: dict[str, str] = {}
    for line, text in enumerate(read_text(path, "data.root").splitlines(), 1):
        image, _, said = text.strip().partition(" ")
        if not image:
            continue
        if not said:
            raise MelaError(f"{path}, line {line}: expected an image, a blank and more, got {text!r}; {FETCH}")
        if image in found:
            raise MelaError(f"{path}, line {line}: expected each image once, got {image!r} again; {FETCH}")
        found[image] = said.strip()
    return found


def read_numbers(path: Path) -> dict[str, Box]:
    """Read a list that says four numbers of each image; raise what `read_list` does."""
    boxes: dict[str, Box] = {}
    for image, said in read_list(path).items():
        try:
            first, second, third, fourth = map(float, said.split())
        except ValueError:
            raise MelaError(f"{path}, image {image!r}: expected four numbers, got {said!r}; {FETCH}") from None
        boxes[image] = first, second, third, fourth
    return boxes


def require_images(root: Path, names: Iterable[str], *, by: str) -> None:
    """Raise MelaError unless all images that a list names are below `root`.

    Parameters
    ----------
    root : Path
    names : iterable of str
        Paths below it.
    by : str
        What names them, for the message.
    """
    there: dict[str, set[str]] = {}
    missing = []
    for name in names:
        folder, _, file = name.rpartition("/")
        if folder not in there:
            there[folder] = set(list_images(root / folder))
        if file not in there[folder]:
            missing.append(name)
    if missing:
        raise MelaError(
            f"{root}: expected the images that {by} names, but not all are there; missing: {len(missing)}, such as "
            f"{missing[0]!r}; add them"
        )


def boxes_of(path: Path, image_of: Mapping[str, str], corners: Callable[..., Box]) -> dict[str, Box]:
    """Return the box of each of some sources.

    Parameters
    ----------
    path : Path
        List of boxes.
    image_of : mapping of str to str
        From source to the image that the list names.
    corners : callable
        Takes the four numbers of the list.

    Raises
    ------
    MelaError
        A source has none, or what `read_numbers` raises.
    """
    numbers = read_numbers(path)
    if without := [source for source, image in image_of.items() if image not in numbers]:
        image = image_of[without[0]]
        raise MelaError(f"{path}: expected a box for each image, got none for {without[0]!r} (image {image}); {FETCH}")
    return {source: corners(*numbers[image]) for source, image in image_of.items()}


def cut_to_box(image: Image.Image, box: Box, name: str) -> Image.Image:
    """Cut an image to a square that holds a box, so that what the box is around keeps its shape.

    The square is as large as the longer side of the box. It is around the box's centre, moved into the image as far as
    that has room; where the square is larger than the image, the pixels at the edge are repeated.

    Raises
    ------
    MelaError
        The box has no area within the image; names the image.
    """
    left, top, right, bottom = box
    if min(right, image.width) <= max(left, 0) or min(bottom, image.height) <= max(top, 0):
        size = f"{image.width} x {image.height}"
        raise MelaError(f"image {name!r}: expected a box within its {size} pixels, got {box}; {FETCH}")
    # of the part that the image has
    spans = [(max(left, 0.0), min(right, float(image.width))), (max(top, 0.0), min(bottom, float(image.height)))]
    side = max(1, *(ceil(last) - floor(first) for first, last in spans))
    starts = [
        _start((first + last) / 2, side, length)
        for (first, last), length in zip(spans, (image.width, image.height), strict=True)
    ]
    # rows before columns
    padding = [
        (max(0, -start), max(0, start + side - length))
        for start, length in zip(starts[::-1], (image.height, image.width), strict=True)
    ]
    x, y = (max(0, start) for start in starts)
    inside = np.asarray(image.crop((x, y, min(x + side, image.width), min(y + side, image.height))))
    return Image.fromarray(np.pad(inside, [*padding, *[(0, 0)] * (inside.ndim - 2)], mode="edge"))


def _start(centre: float, side: int, length: int) -> int:
    """Return where a square begins along one axis; below 0 if it is longer than the image."""
    if side >= length:
        return -((side - length) // 2)
    return min(max(floor(centre - side / 2 + 0.5), 0), length - side)
