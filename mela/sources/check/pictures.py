"""Inspect the image files of a data set: sizes, kinds of pixels, repeats, and which cannot be read."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from mela.errors import MelaError, told
from mela.io.reading_errors import AboutFile
from mela.sources.duplicate_images import digest
from mela.sources.image_files import open_image, read_header

GREY_MODES = frozenset({"1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L"})
Progress = Callable[[Sequence[str]], Iterable[str]]


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """Hold what was seen of some image files.

    Attributes
    ----------
    count : int
        Files, readable or not.
    sizes : Counter of (width, height)
        Sizes in pixels of the readable ones.
    modes : Counter of str
        Modes by Pillow's names.
    coloured : bool
        Whether some image has a pixel that is not grey; where pixels were not looked at, a mode that allows colour.
    copies : list of list of str
        Files that show the same pixels, each group sorted; empty where pixels were not looked at.
    digests : dict of str to bytes
        Digest of the pixels of every file, by name; empty if pixels were not read.
    brightness : dict of str to float
        Mean grey level of every image, by name, from above 0 to 1; empty if pixels were not read.
    problems : list of str
        One line for each file that cannot be read, as `AboutFile` where the file is at fault, and not the machine.
    """

    count: int
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    coloured: bool
    copies: list[list[str]]
    digests: dict[str, bytes] = field(default_factory=dict)
    brightness: dict[str, float] = field(default_factory=dict)
    problems: list[str]


@dataclass(frozen=True, kw_only=True)
class Inspected:
    """Hold what was seen of one file: its size, mode and pixels, or the problem that kept it from being read."""

    size: tuple[int, int] | None = None
    mode: str | None = None
    coloured: bool = False
    digest: bytes | None = None
    brightness: float | None = None
    problem: str | None = None


def inspect_files(
    root: Path,
    names: Sequence[str],
    *,
    decode: bool,
    progress: Progress = lambda names: names,
    known: dict[str, Inspected] | None = None,
) -> Pictures:
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
    known : dict, optional
        What was seen of files before; these are not opened again, and the others are added.
    """
    known = {} if known is None else known
    for name in progress([name for name in names if name not in known]):
        known[name] = _inspected(root / name, name, decode=decode)
    files = {name: known[name] for name in names}
    by_pixels: dict[bytes, list[str]] = {}
    for name, file in files.items():
        if file.digest is not None:
            by_pixels.setdefault(file.digest, []).append(name)
    return Pictures(
        count=len(names),
        sizes=Counter(file.size for file in files.values() if file.size is not None),
        modes=Counter(file.mode for file in files.values() if file.mode is not None),
        coloured=any(file.coloured for file in files.values()),
        copies=sorted(sorted(group) for group in by_pixels.values() if len(group) > 1),
        digests={name: file.digest for name, file in files.items() if file.digest is not None},
        brightness={name: file.brightness for name, file in files.items() if file.brightness is not None},
        problems=[file.problem for file in files.values() if file.problem is not None],
    )


def _inspected(path: Path, name: str, *, decode: bool) -> Inspected:
    try:
        with warnings.catch_warnings():
            # told below as an error
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            size, mode = read_header(path, name)
            image = open_image(path, name) if decode else None
    except MelaError as error:
        return Inspected(problem=AboutFile(str(error), name))
    except OSError as error:
        return Inspected(problem=told(error) or str(error))
    if image is None:
        return Inspected(size=size, mode=mode, coloured=mode not in GREY_MODES)
    # between levels 0 and 1, so that it has a logarithm
    brightness = (float(np.asarray(image.convert("L")).mean()) + 0.5) / 255.5
    return Inspected(size=size, mode=mode, coloured=_is_coloured(image), digest=digest(image), brightness=brightness)


def _is_coloured(image: Image.Image) -> bool:
    if image.mode != "RGB":
        return False
    pixels = np.asarray(image)
    return bool((pixels[..., :1] != pixels[..., 1:]).any())
