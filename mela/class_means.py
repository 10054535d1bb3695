"""Task classes as single vectors: what label inference compares."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from mela.errors import MelaError


@dataclass(frozen=True, kw_only=True)
class ClassMeans:
    """The classes of all tasks, sorted by task and local label.

    Attributes
    ----------
    task_ids : int64 (n,)
        Rows of a task are adjacent.
    local_labels : int64 (n,)
    means : float64 (n, m)
        Mean feature of a task class over its support and query samples, the inner sum of Eq. 12.
    sizes : int64 (n,)
        Samples per task class, I in Eq. 12-13.
    """

    task_ids: npt.NDArray[np.int64]
    local_labels: npt.NDArray[np.int64]
    means: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.int64]

    @property
    def starts(self) -> npt.NDArray[np.int64]:
        """Bounds of the tasks (n_tasks + 1,): task t holds the rows ``starts[t]`` to ``starts[t + 1] - 1``."""
        changes = np.flatnonzero(np.diff(self.task_ids)) + 1
        return np.concatenate([[0], changes, [len(self.task_ids)]]).astype(np.int64)

    def rows_of(self, manifest: pd.DataFrame) -> npt.NDArray[np.int64]:
        """The task class (a row of `means`) of each sample of a manifest (n_samples,)."""
        classes = pd.MultiIndex.from_arrays([self.task_ids, self.local_labels])
        return classes.get_indexer(pd.MultiIndex.from_frame(manifest[["task_id", "local_label"]])).astype(np.int64)


def class_means(
    manifest: pd.DataFrame, image_ids: npt.NDArray[np.int64], features: npt.NDArray[np.float32]
) -> ClassMeans:
    """Average the features of each task class.

    Parameters
    ----------
    manifest : DataFrame
        Columns task_id, image_id, local_label, one row per sample.
    image_ids : int64 (n_images,)
    features : float32 (n_images, m)

    Raises
    ------
    MelaError
        The manifest is empty or names an image without features.
    """
    if manifest.empty:
        raise MelaError("train manifest: expected at least one task, found none")
    rows = pd.Index(image_ids).get_indexer(pd.Index(manifest["image_id"]))
    if (rows < 0).any():
        missing = manifest["image_id"].iloc[int(np.argmin(rows))]
        raise MelaError(
            f"features: expected one for every image of the manifest, found none for image {missing}; rerun extract"
        )
    keys = manifest[["task_id", "local_label"]].to_numpy(dtype=np.int64)
    classes, inverse, sizes = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(inverse.reshape(-1), kind="stable")
    bounds = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    means = np.empty((len(classes), features.shape[1]), dtype=np.float64)
    for index, (start, size) in enumerate(zip(bounds, sizes, strict=True)):
        means[index] = features[rows[order[start : start + size]]].mean(axis=0, dtype=np.float64)
    return ClassMeans(task_ids=classes[:, 0], local_labels=classes[:, 1], means=means, sizes=sizes.astype(np.int64))
