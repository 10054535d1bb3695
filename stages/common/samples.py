"""Read the samples of the training tasks."""

from pathlib import Path

import pandas as pd

from mela.data.array_types import Ints
from mela.io import feature_tables
from mela.io.look_files import read_looks
from mela.labeling.task_classes import TaskSamples, manifest_samples


def read_samples(manifest: pd.DataFrame, features: Path, looks: Path | None = None) -> tuple[TaskSamples, Ints]:
    """Return the samples of a manifest, and the images of the rows of features (n_rows,)."""
    image_ids, vectors = feature_tables.read_features(features)
    covariance = None if looks is None else read_looks(looks, vectors.shape[1])
    return manifest_samples(manifest, image_ids, vectors, covariance), image_ids
