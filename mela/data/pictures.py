"""What the image files of a data set are like: sizes, kinds of pixels, repeats, and which cannot be read."""

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from mela.data.files import open_image, read_header
from mela.errors import MelaError, told

GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L"})
Progress = Callable[[Sequence[str]], Iterable[str]]


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """What was seen of some image files.

    Attributes
    ----------
    count : int
        Files, readable or not.
    sizes : Counter of (width, height)
        In pixels, of the readable ones.
    modes : Counter of str
        As Pillow names them.
    coloured : bool
        Whether some image has a pixel that is not grey; where pixels were not looked at, a mode that allows colour.
    copies : list of list of str
        Files that show the same pixels, each group sorted; empty where pixels were not looked at.
    problems : list of str
        One line for each file that cannot be read.
    """

    count: int
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    coloured: bool
    copies: list[list[str]]
    problems: list[str]


def look_at(root: Path, names: Sequence[str], *, decode: bool, progress: Progress = lambda names: names) -> Pictures:
    """Open image files one after the other.

    Parameters
    ----------
    root : Path
    names : sequence of str
        Paths below `root`.
    decode : bool
        Read them whole, as the stage images does; otherwise only what comes before the pixels.
    progress : callable
        Hands the names on, and shows how far that is.
    """
    sizes: Counter[tuple[int, int]] = Counter()
    modes: Counter[str] = Counter()
    by_pixels: dict[bytes, list[str]] = {}
    problems, coloured = [], False
    for name in progress(names):
        try:
            with warnings.catch_warnings():
                # told below as an error
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)
                header = read_header(root / name, name)
                image = open_image(root / name, name) if decode else None
        except (MelaError, OSError) as error:
            problems.append(told(error) or str(error))
            continue
        sizes[header.size] += 1
        modes[header.mode] += 1
        if image is None:
            coloured = coloured or header.mode not in GREY_MODES
        else:
            coloured = coloured or _is_coloured(image)
            by_pixels.setdefault(_digest(image), []).append(name)
    return Pictures(
        count=len(names),
        sizes=sizes,
        modes=modes,
        coloured=coloured,
        copies=sorted(sorted(group) for group in by_pixels.values() if len(group) > 1),
        problems=problems,
    )


def _is_coloured(image: Image.Image) -> bool:
    if image.mode != "RGB":
        return False
    pixels = np.asarray(image)
    return bool((pixels[..., :1] != pixels[..., 1:]).any())


def _digest(image: Image.Image) -> bytes:
    """Of what an image shows: grey pixels are the same in each mode."""
    shown = hashlib.blake2b(repr(image.size).encode(), digest_size=16)
    shown.update(image.convert("RGB").tobytes())
    return shown.digest()
