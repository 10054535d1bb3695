"""Read the samples of the training tasks."""

from pathlib import Path

from mela.data.array_types import Ints
from mela.io import feature_tables
from mela.io.checked_tables import read_manifest
from mela.io.look_files import read_looks
from mela.labeling.task_classes import TaskSamples, manifest_samples


def read_samples(train: Path, features: Path, looks: Path | None = None) -> tuple[TaskSamples, Ints]:
    """Return the samples of the tasks, and the images of the rows of features (n_rows,)."""
    image_ids, vectors = feature_tables.read_features(features)
    covariance = None if looks is None else read_looks(looks, vectors.shape[1])
    return manifest_samples(read_manifest(train), image_ids, vectors, covariance), image_ids
