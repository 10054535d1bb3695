"""Read the samples of the training tasks."""

from pathlib import Path

import pandas as pd

from mela.data.array_types import Ints
from mela.io import feature_tables, store
from mela.io.look_files import read_looks
from mela.io.name_tables import TASK_SOURCES
from mela.labeling.task_classes import TaskSamples, manifest_samples, with_sources


def features_in(folder: Path) -> Path:
    """Return where the features of a round are, in its folder."""
    return folder / "features.parquet"


def looks_in(folder: Path) -> Path:
    """Return where the looks of a round are, in its folder."""
    return folder / "looks.npy"


def read_samples(
    manifest: pd.DataFrame, features: Path, looks: Path | None = None, sources: Path | None = None
) -> tuple[TaskSamples, Ints]:
    """Return the samples of a manifest, with looks and sources if their files are given, and the images of the rows.

    The images (n_rows,) are those of the rows of features.
    """
    image_ids, vectors = feature_tables.read_features(features)
    covariance = None if looks is None else read_looks(looks, vectors.shape[1])
    samples = manifest_samples(manifest, image_ids, vectors, covariance)
    known = None if sources is None else store.read_table(sources, TASK_SOURCES)
    if known is not None and len(known):
        of_tasks = known.set_index("task_id")["source"]
        samples = with_sources(samples, manifest["task_id"].map(of_tasks).to_numpy())
    return samples, image_ids
