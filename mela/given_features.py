"""Features that somebody else has made, in place of those of the initial embedding."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from mela.errors import MelaError
from mela.label_inputs import Features, read_features

ORDER = "image_id is the row of data/images/images.npy"


def given_features(path: Path, image_ids: npt.NDArray[np.int64], n_images: int) -> npt.NDArray[np.float32]:
    """Features (n, m) of the images with the given ids (n,), from a file.

    Parameters
    ----------
    path : Path
        As `mela.label_inputs.read_features` reads it: ``.npy`` with a row for every packed image in the order of their
        ids, or Parquet with ``image_id`` and ``feature`` or ``f0``, ``f1``...
    image_ids : int64 (n,)
    n_images : int
        That are packed.

    Raises
    ------
    MelaError
        There is no such file, it cannot be read, its ids are no integers, or an image lacks features.
    """
    known, features = _read(path, n_images)
    rows = known.get_indexer(pd.Index(image_ids))
    if (rows < 0).any():
        missing = image_ids[rows < 0]
        raise MelaError(
            f"{path}: expected features of all {len(image_ids)} images of training tasks, found none of image "
            f"{missing[0]} ({len(missing)} lack them); {ORDER}"
        )
    return np.asarray(features[rows], dtype=np.float32)


def features_that_are_given(
    path: Path, image_ids: npt.NDArray[np.int64], n_images: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Return those of the ids that have features, and their features; errors are those of `given_features`."""
    known, features = _read(path, n_images)
    rows = known.get_indexer(pd.Index(image_ids))
    return image_ids[rows >= 0], np.asarray(features[rows[rows >= 0]], dtype=np.float32)


def _read(path: Path, n_images: int) -> tuple[pd.Index, Features]:
    if not path.is_file():
        raise MelaError(f"extract.features: expected the file {path}, found none; put it there, or correct the name")
    known, features = read_features(path)
    if path.suffix.lower() == ".npy" and len(features) != n_images:
        raise MelaError(f"{path}: expected {n_images} rows, one for each packed image, got {len(features)}; {ORDER}")
    if not pd.api.types.is_integer_dtype(known):
        raise MelaError(f"{path}: image_id: expected integers, got {known[0]!r}; {ORDER}")
    return known, features
