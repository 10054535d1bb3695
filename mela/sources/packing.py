"""Pack all images into one array on disk, decoded once."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from mela.runtime.progress import SILENT, Watch
from mela.sources.source import ImageSource

BLOCK_BYTES = 2**26


def shuffled_ids(n_images: int, seed: int) -> npt.NDArray[np.int64]:
    """Return a new id for each of a source's images (n_images,).

    Sources list their images class by class; shuffled, an id says nothing about the class.
    """
    return np.random.default_rng(seed).permutation(n_images).astype(np.int64)


def pack_images(
    path: Path,
    source: ImageSource,
    ids: npt.NDArray[np.int64],
    *,
    size: int,
    channels: int,
    watch: Watch = SILENT,
) -> None:
    """Write the images of a source as one ``.npy`` array (N, size, size, channels) of uint8.

    Written from front to back, since a map filled in random order writes each of its pages again and again once it
    outgrows the memory; read in the source's order within blocks of 64 MiB, the only images in memory.

    Parameters
    ----------
    path : Path
    source : ImageSource
    ids : int64 (N,)
        Row of each of the source's images.
    size : int
        Side in pixels: images are cut to a centred square and resized (Lanczos).
    channels : int
        1 for grey, 3 for RGB.
    watch : Watch
        Counts images.
    """
    shape = (size, size, channels)
    order = np.argsort(ids)
    rows = max(1, BLOCK_BYTES // (size * size * channels))
    block = np.empty((min(rows, len(source)), *shape), dtype=np.uint8)
    header = {
        "descr": np.lib.format.dtype_to_descr(block.dtype),
        "fortran_order": False,
        "shape": (len(source), *shape),
    }
    watch.begin(len(source))
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, len(source), rows):
            own = np.sort(order[start : start + rows])
            for index in own.tolist():
                block[ids[index] - start] = to_array(source.load(index), size=size, channels=channels)
                watch.advance()
            # tofile does not say why it fails
            file.write(block[: len(own)].data)


def to_array(image: Image.Image, *, size: int, channels: int) -> npt.NDArray[np.uint8]:
    """Convert one image to (size, size, channels) uint8."""
    image = image.convert("L" if channels == 1 else "RGB")
    if image.size != (size, size):
        image = ImageOps.fit(image, (size, size), method=Image.Resampling.LANCZOS)
    return np.asarray(image, dtype=np.uint8).reshape(size, size, channels)
