"""Bring users' images to the size and the channels of a model as the stage ``images`` would."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from mela.data.array_types import Images, Ints
from mela.errors import MelaError
from mela.sources.image_files import open_image, still_image
from mela.sources.packing import to_array

Pictures = Sequence[Any] | Images

BLOCK_BYTES = 2**24
CHANNELS = (1, 3, 4)


def list_pictures(images: Any, name: str) -> Pictures:
    """Return the images as something with a length, checked as far as possible without opening files.

    Parameters
    ----------
    images : array-like
        uint8 arrays (n, h, w) of grey levels or (n, h, w, c) with c = 1 (grey), 3 (RGB) or 4 (RGBA), or a list or
        one-dimensional array of arrays (h, w) or (h, w, c), PIL images and paths, whose sizes may differ.
    name : str
        What errors call them.

    Raises
    ------
    MelaError
        There are none, it is a single image, or an array is of another type or shape.
    """
    if isinstance(images, str | Path | Image.Image):
        kind = "one PIL image" if isinstance(images, Image.Image) else f"one path, {str(images)!r}"
        raise MelaError(f"{name}: expected several images, got {kind}; put it into a list, [image]")
    if isinstance(images, np.ndarray) and images.dtype.kind not in "OU":
        _check_batch(images, name)
        listed: Pictures = images
    else:
        try:
            listed = list(images)
        except TypeError:
            raise MelaError(
                f"{name}: expected an array (n, h, w, c) or (n, h, w), or a list of arrays, PIL images or paths, "
                f"got {type(images).__name__}"
            ) from None
    if not len(listed):
        raise MelaError(f"{name}: expected at least one image, got none")
    return listed


def packed_blocks(pictures: Pictures, name: str, *, size: int, channels: int) -> Iterator[Images]:
    """Yield images (b, size, size, channels) in order, 16 MiB of them at a time.

    Each goes the way of an image file through the stage ``images``: turned as its EXIF orientation says, transparency
    blended with black, converted to grey or RGB, cut to a centred square and resized.

    Parameters
    ----------
    pictures : sequence or array
        See `list_pictures`.
    name : str
        What errors call them; files are called by their path.
    size, channels : int
        Side in pixels and channels of the model's images.

    Raises
    ------
    MelaError
        An image cannot be read, or is none.
    """
    rows = max(1, BLOCK_BYTES // (size * size * channels))
    for start in range(0, len(pictures), rows):
        block = pictures[start : start + rows]
        if isinstance(block, np.ndarray) and _fits(block, size, channels):
            yield block.reshape(-1, size, size, channels)
            continue
        packed = np.empty((len(block), size, size, channels), dtype=np.uint8)
        for row, picture in enumerate(block):
            packed[row] = to_array(_opened(picture, f"{name}[{start + row}]"), size=size, channels=channels)
        yield packed


def readable_blocks(
    paths: Sequence[Path], *, size: int, channels: int, leave_out: Callable[[Path, str], object]
) -> Iterator[tuple[Ints, Images]]:
    """Read image files as `packed_blocks` does, but skip those that cannot be read.

    Parameters
    ----------
    paths : sequence of Path
    size, channels : int
        Side in pixels and channels of the model's images.
    leave_out : callable
        Told each file that cannot be read, and why.

    Yields
    ------
    positions : int64 (b,)
        Positions of the files in `paths`.
    images : uint8 (b, size, size, channels)
    """
    rows = max(1, BLOCK_BYTES // (size * size * channels))
    for start in range(0, len(paths), rows):
        positions, images = [], []
        for position, path in enumerate(paths[start : start + rows], start):
            try:
                images.append(to_array(open_image(path, str(path)), size=size, channels=channels))
            except MelaError as error:
                leave_out(path, str(error))
                continue
            positions.append(position)
        if images:
            yield np.array(positions), np.stack(images)


def _fits(block: Images, size: int, channels: int) -> bool:
    """Tell whether packing would change nothing."""
    return block.shape[1:] == (size, size, channels) or (channels == 1 and block.shape[1:] == (size, size))


def _opened(picture: Any, name: str) -> Image.Image:
    if isinstance(picture, str | Path):
        path = Path(picture)
        if path.exists() and not path.is_file() and not path.is_dir():
            # reading would wait for ever
            raise MelaError(f"image {str(picture)!r}: expected a file, got a device or a pipe; give another path")
        return open_image(path, str(picture))
    if isinstance(picture, np.ndarray):
        _check_image(picture, name)
        picture = Image.fromarray(picture[..., 0] if picture.shape[2:] == (1,) else picture)
    if not isinstance(picture, Image.Image):
        raise MelaError(f"{name}: expected an array, a PIL image or a path, got {type(picture).__name__}")
    return still_image(picture, name)


def _check_batch(images: npt.NDArray[Any], name: str) -> None:
    _check_type(images, name)
    one = images.ndim == 2 or (images.ndim == 3 and images.shape[2] in CHANNELS)
    if one:
        raise MelaError(
            f"{name}: expected a batch (n, h, w, c) or (n, h, w), got one image of shape {images.shape}; add the axis, "
            "images[None]"
        )
    if images.ndim not in (3, 4) or 0 in images.shape[1:]:
        raise MelaError(f"{name}: expected shape (n, h, w, c) or (n, h, w), got {images.shape}")
    if images.ndim == 4 and images.shape[3] not in CHANNELS:
        raise MelaError(
            f"{name}: expected shape (n, h, w, c) with c = 1, 3 or 4, got {images.shape}; if channels come second, "
            "images.transpose(0, 2, 3, 1)"
        )


def _check_image(image: npt.NDArray[Any], name: str) -> None:
    _check_type(image, name)
    channels = image.shape[2] if image.ndim == 3 else 1
    if image.ndim not in (2, 3) or 0 in image.shape or channels not in CHANNELS:
        raise MelaError(f"{name}: expected shape (h, w), or (h, w, c) with c = 1, 3 or 4, got {image.shape}")


def _check_type(images: npt.NDArray[Any], name: str) -> None:
    if images.dtype == np.uint8:
        return
    if images.dtype.kind == "f":
        advice = ", which does not tell whether white is 1 or 255; if it is 1, pass (255 * images).round()"
    elif images.dtype.kind == "b":
        advice = "; pass (255 * images)"
    else:
        advice = "; if all values are 0 to 255, pass images"
    raise MelaError(f"{name}: expected uint8 (0 to 255), got {images.dtype}{advice}.astype(np.uint8)")
