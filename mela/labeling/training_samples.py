"""Read the samples of the training tasks."""

from pathlib import Path

import pandas as pd

from mela.data.array_types import Ints
from mela.io import feature_tables, store
from mela.io.look_files import read_looks
from mela.io.name_tables import TASK_NAMES, TASK_SOURCES, with_names
from mela.labeling.task_classes import TaskSamples, manifest_samples, with_sources, with_written


def features_in(folder: Path) -> Path:
    """Return where the features of a round are, in its folder."""
    return folder / "features.parquet"


def looks_in(folder: Path) -> Path:
    """Return where the looks of a round are, in its folder."""
    return folder / "looks.npy"


def read_samples(
    manifest: pd.DataFrame,
    features: Path,
    looks: Path | None = None,
    sources: Path | None = None,
    names: Path | None = None,
) -> tuple[TaskSamples, Ints]:
    """Return the samples of a manifest, with looks, sources and names if their files are given.

    The second result are the images (n_rows,) of the rows of features. Drawn tasks have no names.
    """
    image_ids, vectors = feature_tables.read_features(features)
    covariance = None if looks is None else read_looks(looks, vectors.shape[1])
    samples = manifest_samples(manifest, image_ids, vectors, covariance)
    known = None if sources is None else store.read_table(sources, TASK_SOURCES)
    if known is not None and len(known):
        of_tasks = known.set_index("task_id")["source"]
        samples = with_sources(samples, manifest["task_id"].map(of_tasks).to_numpy())
    written = None if names is None else store.read_table(names, TASK_NAMES)
    if written is not None and len(written):
        samples = with_written(samples, with_names(manifest, written)["label"].to_numpy())
    return samples, image_ids
