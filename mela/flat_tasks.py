"""All tasks as flat arrays: their first shots, and tasks of one shape as matrices."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mela.episodes import Episodes

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class TaskGroup:
    """t tasks of the same ways, with n support and q query images each.

    Attributes
    ----------
    positions : int64 (t,)
        Of the tasks among all.
    ways : int
    support, query : int64 (t, n), (t, q)
        Image ids.
    support_labels, query_labels : int64 (t, n), (t, q)
        0 to ways - 1.
    """

    positions: Ints
    ways: int
    support: Ints
    support_labels: Ints
    query: Ints
    query_labels: Ints

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, tasks: slice | Ints) -> "TaskGroup":
        """Some of the tasks."""
        return TaskGroup(
            positions=self.positions[tasks],
            ways=self.ways,
            support=self.support[tasks],
            support_labels=self.support_labels[tasks],
            query=self.query[tasks],
            query_labels=self.query_labels[tasks],
        )


@dataclass(frozen=True, kw_only=True)
class FlatTasks:
    """One row per image of a task, tasks one after the other.

    Attributes
    ----------
    position : int64 (r,)
        Of the task among all, rising.
    image_ids, labels : int64 (r,)
    is_support : bool (r,)
    """

    position: Ints
    image_ids: Ints
    labels: Ints
    is_support: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, tasks: Episodes) -> "FlatTasks":
        """Of tasks, in their order."""
        position, image_ids, labels, is_support = tasks.rows()
        return cls(position=position, image_ids=image_ids, labels=labels, is_support=is_support)

    def shots(self) -> Ints:
        """Support images of every class of every task, one class after the other."""
        counts: Ints = np.bincount(self._classes, self.is_support).astype(np.int64)
        return counts

    def first_shots(self, shots: int) -> "FlatTasks":
        """The tasks all of whose classes have `shots` support images, with the first of these and all queries.

        A 1-shot task is thus the 5-shot task with each class's first support image and the same queries.
        """
        classes = self._classes
        order = np.flatnonzero(self.is_support)
        order = order[np.argsort(classes[order], kind="stable")]
        rank = np.zeros(len(classes), dtype=np.int64)
        rank[order] = np.arange(len(order)) - np.searchsorted(classes[order], classes[order])
        too_few = (self.shots() < shots)[classes]
        whole = ~np.isin(self.position, self.position[too_few])
        rows = whole & (~self.is_support | (rank < shots))
        return FlatTasks(
            position=self.position[rows],
            image_ids=self.image_ids[rows],
            labels=self.labels[rows],
            is_support=self.is_support[rows],
        )

    def groups(self) -> list[TaskGroup]:
        """Tasks of the same ways and numbers of support and query images together."""
        if not len(self.position):
            return []
        positions, starts, sizes = np.unique(self.position, return_index=True, return_counts=True)
        ways = np.maximum.reduceat(self.labels, starts) + 1
        n_support = np.add.reduceat(self.is_support.astype(np.int64), starts)
        shapes = np.stack([ways, n_support, sizes - n_support], axis=1)
        groups = []
        for k, n, q in np.unique(shapes, axis=0).tolist():
            here = np.flatnonzero((shapes == (k, n, q)).all(axis=1))
            rows = starts[here][:, None] + np.arange(n + q)
            # support before query, each in its own order
            rows = np.take_along_axis(rows, np.argsort(~self.is_support[rows], axis=1, kind="stable"), axis=1)
            support, query = rows[:, :n], rows[:, n:]
            groups.append(
                TaskGroup(
                    positions=positions[here],
                    ways=k,
                    support=self.image_ids[support],
                    support_labels=self.labels[support],
                    query=self.image_ids[query],
                    query_labels=self.labels[query],
                )
            )
        return groups

    @cached_property
    def _classes(self) -> Ints:
        """A number for each class of each task (r,), from 0."""
        keys = self.position * (self.labels.max(initial=0) + 1) + self.labels
        return np.unique(keys, return_inverse=True)[1]
