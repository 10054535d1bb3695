"""Find images that lie in several splits under different names."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from mela.sources.plurals import images_are

BLOCK = 1024


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """Hold images that are found in more than one split.

    Attributes
    ----------
    count : int
        Different images.
    example : tuple of str
        Split and source of one of them, and of the same one in another split: ``(split, source, split, source)``.
    """

    count: int
    example: tuple[str, str, str, str]

    def __str__(self) -> str:
        one, first, other, second = self.example
        return (
            f"{images_are(self.count)} in several splits, such as {first!r} ({one}) and {second!r} ({other}); "
            "accuracies then say less about what is new"
        )


def between_splits(
    images: npt.NDArray[np.uint8],
    image_ids: npt.NDArray[np.int64],
    splits: Sequence[str],
    sources: Sequence[str],
) -> Repeats | None:
    """Find what the splits have in common, pixel by pixel as packed; None if it is nothing.

    Parameters
    ----------
    images : uint8 (N, h, w, c), possibly memory-mapped
    image_ids : int64 (N,)
        Row of each of the images that `splits` and `sources` list.
    splits, sources : sequence of str, length N
    """
    digests = np.empty(len(images), dtype="S16")
    for start in range(0, len(images), BLOCK):
        for row, image in enumerate(np.ascontiguousarray(images[start : start + BLOCK]), start=start):
            digests[row] = hashlib.blake2b(image.tobytes(), digest_size=8).hexdigest().encode()
    table = pd.DataFrame({"digest": digests[image_ids], "split": list(splits), "source": list(sources)})
    first = table.groupby("digest", sort=False).transform("first")
    other = table["split"] != first["split"]
    if not other.any():
        return None
    row = int(np.argmax(other))
    example = (first["split"][row], first["source"][row], table["split"][row], table["source"][row])
    return Repeats(count=int(table["digest"][other].nunique()), example=example)
