"""Find the image files below a folder, and decode them."""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from mela.errors import MelaError, raise_if_machine, told
from mela.io.reading_errors import AboutFile, Report, refuse
from mela.sources.image_kinds import (
    ARCHIVE_SUFFIXES,
    is_image,
    is_image_name,
    reads_heif,
    suffixes,
    unpack_it,
    why_unused,
)

Note = Callable[[str, str], object]


def require_folder(root: Path, key: str) -> None:
    """Raise MelaError unless `root`, the value of the parameter `key`, is a folder."""
    if not root.is_dir():
        if root.is_file() and root.suffix.lower() in ARCHIVE_SUFFIXES:
            raise MelaError(f"{key}: expected a folder, got the archive {root}; {unpack_it(root)}")
        got = "a file" if root.is_file() else "nothing"
        raise MelaError(f"{key}: expected a folder at {root}, got {got}; set {key} to the folder of images")


def list_images(folder: Path) -> list[str]:
    """Return the sorted names of the images that lie directly in `folder`; empty if there is no such folder.

    Raises
    ------
    MelaError
        For a link that leaves the folder, and a name that is not valid Unicode.
    """
    if not folder.is_dir():
        return []
    names, root = [], folder.resolve()
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_image_name(entry.name) and entry.is_file():
                problem = _problem(root, entry.name, is_folder=False, is_link=entry.is_symlink())
                if problem is not None:
                    refuse(problem)
                names.append(entry.name)
    return sorted(names)


def walk_images(
    root: Path, *, report: Report = refuse, note: Note = lambda path, reason: None
) -> Iterator[tuple[str, list[str]]]:
    """Yield every folder below `root` that holds images, and the sorted names of those images.

    Files that are no images, and whatever starts with a dot, are passed over, and so is what is neither file nor
    folder; `mela.sources.folder_tree.check_files` reports the latter.

    Parameters
    ----------
    root : Path
    report : callable
        Told of a folder with neither images nor folders in it, a link that leaves `root`, a link to a folder (it could
        form a loop, or give one image two names), a folder that may not be read, and a name that is not valid
        Unicode; these are left out.
    note : callable
        Told the path of every file, and of every hidden folder, that is passed over, and why.

    Yields
    ------
    folder : str
        Relative to `root`, with ``/``; ``""`` for `root` itself.
    names : list of str
    """
    yield from _walk(root.resolve(), "", report, note)


def _walk(root: Path, folder: str, report: Report, note: Note) -> Iterator[tuple[str, list[str]]]:
    names, folders, left_out = [], [], False
    try:
        with os.scandir(root / folder) as entries:
            found = list(entries)
    except PermissionError as error:
        report(AboutFile(permission_problem(root, folder, error), folder))
        return
    for entry in found:
        path = f"{folder}/{entry.name}" if folder else entry.name
        try:
            is_folder = entry.is_dir()
            is_file = entry.is_file()
        except OSError:
            # a link that leads to itself
            is_folder = is_file = False
        if entry.name.startswith("."):
            note(path, "hidden folder" if is_folder else "hidden")
            continue
        if not is_folder and not is_file:
            continue
        if not is_folder and not is_image(Path(entry.path)):
            note(path, why_unused(entry.name))
            continue
        problem = _problem(root, path, is_folder=is_folder, is_link=entry.is_symlink())
        if problem is not None:
            report(AboutFile(problem, path))
            left_out = True
        elif is_folder:
            folders.append(path)
        else:
            names.append(entry.name)
    if names:
        yield folder, sorted(names)
    elif not folders and not left_out:
        report(
            f"{root}: expected at least one image ({' '.join(suffixes())}) in folder {folder or '.'!r}, "
            "got none; add images or remove the folder"
        )
    for path in sorted(folders):
        yield from _walk(root, path, report, note)


def _problem(root: Path, path: str, *, is_folder: bool, is_link: bool) -> str | None:
    if (problem := name_problem(root, path)) is not None:
        return problem
    if is_link and is_folder:
        return f"{root}: expected real folders, got the symbolic link {path!r}; put a copy in its place"
    if is_link and not (target := (root / path).resolve()).is_relative_to(root):
        return (
            f"{root}: expected links that stay below this folder, got {path!r} -> {str(target)!r}; "
            "put a copy in its place"
        )
    return None


def name_problem(root: Path, path: str) -> str | None:
    """Return what is wrong with a name that is not valid Unicode; None for every other name."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return f"{root}: expected file names in UTF-8, got {path!r}; rename it"
    return None


def permission_problem(root: Path, path: str, error: OSError) -> str:
    """Return the message for a file or a folder that may not be read."""
    return told(type(error)(error.errno, error.strerror, str(root / path))) or str(error)


def load_by_source(open_source: Callable[[str], Image.Image], sources: Sequence[str], index: int) -> Image.Image:
    """Open the image that `sources` names at `index`; bind the first two arguments for ``ImageSource.load``."""
    return open_source(sources[index])


def open_below(root: Path, name: str) -> Image.Image:
    """Open the image `name` below `root` by `open_image`; messages call it `name`."""
    return open_image(root / name, name)


def open_image(path: Path, name: str) -> Image.Image:
    """Decode a still image of ordinary size, and turn it by its EXIF orientation.

    Parameters
    ----------
    path : Path
    name : str
        What messages call the image.

    Returns
    -------
    Image
        In mode ``1``, ``L`` or ``RGB``, 8 bits per channel. Transparent pixels are blended with black, 16-bit grey
        levels are scaled to 8 bits, palettes and other colour spaces are converted to RGB. Of the images in an MPO
        file (a phone's JPEG with a depth map or a stereo partner) it is the first.

    Raises
    ------
    MelaError
        One line that names the image: missing, unreadable, truncated, no image, animated or with several pages,
        32 bits per channel, or more than ``PIL.Image.MAX_IMAGE_PIXELS`` pixels.
    OSError, MemoryError
        The machine is at fault: rights, memory, open files, the disk.
    """
    reads_heif()
    with _told(name, path), Image.open(path) as image:
        return _ordinary(image, name)


def still_image(image: Image.Image, name: str) -> Image.Image:
    """Return what `open_image` does, for an image that Pillow has opened or made; raise the same errors."""
    with _told(name, name):
        return _ordinary(image, name)


def decoded(content: bytes, name: str) -> Image.Image:
    """Decode an image from memory, PNG or JPEG; raise the errors of `open_image`."""
    with _told(name, name), Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
        return _ordinary(image, name)


def read_header(path: Path, name: str) -> tuple[tuple[int, int], str]:
    """Read what comes before the pixels; raise the errors of `open_image` that show there.

    Returns
    -------
    size : tuple of int
        Width and height in pixels, as stored.
    mode : str
        Mode by Pillow's name: ``L`` is grey, ``RGB`` colour, ``RGBA`` colour with transparency, ``P`` a palette...
    """
    reads_heif()
    with _told(name, path), Image.open(path) as image:
        _require_ordinary(image, name)
        return image.size, image.mode


@contextmanager
def _told(name: str, place: Path | str) -> Iterator[None]:
    """Turn a decoder's errors into one line that names the image; errors of the machine name its place."""
    try:
        yield
    except MelaError:
        raise
    # Given damaged bytes, decoders raise almost anything: OSError, SyntaxError, struct.error, zlib.error, EOFError...
    except Exception as error:
        raise_if_machine(error, place)
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise MelaError(f"image {name!r}: expected a readable image, got {reason}; replace the file") from error


def _ordinary(image: Image.Image, name: str) -> Image.Image:
    _require_ordinary(image, name)
    return _to_8_bits(ImageOps.exif_transpose(image))


def _require_ordinary(image: Image.Image, name: str) -> None:
    """Raise MelaError for images that Pillow can open, but that are unfit."""
    limit = Image.MAX_IMAGE_PIXELS
    if limit is not None and image.width * image.height > limit:
        fault = f"expected at most {limit} pixels, got {image.width} x {image.height}; make it smaller"
    elif (frames := getattr(image, "n_frames", 1)) > 1 and image.format != "MPO":
        fault = f"expected a still image, got {frames} frames; keep one of them"
    # Pillow before 11.3 opens a 16-bit grey PNG in the 32-bit mode "I", whose levels are then known to be 16-bit ones.
    elif image.mode == "F" or (image.mode == "I" and image.format != "PNG"):
        fault = "expected 8 or 16 bits per channel, got 32; save it with 8"
    else:
        return
    raise MelaError(f"image {name!r}: {fault}")


def _to_8_bits(image: Image.Image) -> Image.Image:
    if image.mode == "I" or image.mode.startswith("I;16"):
        levels = np.asarray(image).astype(np.uint32)
        return Image.fromarray(((levels + 128) // 257).astype(np.uint8))
    if image.has_transparency_data:
        coloured = image.convert("RGBA")
        black = Image.new("RGBA", image.size, (0, 0, 0, 255))
        return Image.alpha_composite(black, coloured).convert("RGB")
    return image if image.mode in ("1", "L", "RGB") else image.convert("RGB")
