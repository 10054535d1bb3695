"""Task classes as single vectors: what label inference compares."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mela.task_samples import TaskSamples


@dataclass(frozen=True, kw_only=True)
class ClassMeans:
    """The classes of all tasks, sorted by task and local label.

    Attributes
    ----------
    task_ids : (n,)
        Name of the task of each class; rows of a task are adjacent.
    starts : int64 (n_tasks + 1,)
        Task t holds the rows ``starts[t]`` to ``starts[t + 1] - 1``.
    means : float64 (n, m)
        Mean feature of a task class over its support and query samples, the inner sum of Eq. 12.
    sizes : int64 (n,)
        Samples per task class, I in Eq. 12-13.
    """

    task_ids: npt.NDArray[Any]
    starts: npt.NDArray[np.int64]
    means: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.int64]

    @property
    def ways(self) -> npt.NDArray[np.int64]:
        """Classes of each task (n_tasks,)."""
        return np.diff(self.starts)

    @property
    def widest(self) -> Any:
        """Name of the task of the most ways."""
        return self.task_ids[self.starts[int(self.ways.argmax())]]


def class_means(samples: TaskSamples) -> ClassMeans:
    """Average the features of each task class."""
    sizes = samples.sizes
    means = np.empty((len(sizes), samples.features.shape[1]), dtype=np.float64)
    for features, classes in samples.blocks():
        first = np.flatnonzero(np.diff(classes, prepend=-1))
        means[classes[first]] = np.add.reduceat(features, first, axis=0) / sizes[classes[first], None]
    return ClassMeans(task_ids=samples.task_ids, starts=samples.starts, means=means, sizes=sizes)
