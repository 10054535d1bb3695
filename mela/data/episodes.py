"""Represent the tasks of a manifest as arrays, whatever their ways and shots."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pandas as pd

from mela.data.array_types import Ints


@dataclass(frozen=True)
class Episode:
    """Hold one task of n images.

    Attributes
    ----------
    task_id : int
    image_ids : int64 (n,)
    labels : int64 (n,)
        Local labels, 0 to ways - 1.
    is_support : bool (n,)
        The others are query images.
    """

    task_id: int
    image_ids: Ints
    labels: Ints
    is_support: npt.NDArray[np.bool_]


class Episodes(Sequence[Episode]):
    """Hold the tasks of a manifest in the order of their ids.

    Parameters
    ----------
    manifest : DataFrame
        Columns task_id, image_id, local_label and role; rows of a task keep their order.
    """

    def __init__(self, manifest: pd.DataFrame) -> None:
        ordered = manifest.sort_values("task_id", kind="stable")
        self._images = ordered["image_id"].to_numpy(dtype=np.int64)
        self._labels = ordered["local_label"].to_numpy(dtype=np.int64)
        self._support = (ordered["role"] == "support").to_numpy(dtype=bool)
        self.task_ids, starts = np.unique(ordered["task_id"].to_numpy(dtype=np.int64), return_index=True)
        self._bounds = np.append(starts, len(ordered))

    def __len__(self) -> int:
        return len(self.task_ids)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        """Return the task at a position; a slice gives a list."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"expected a position below {len(self)}, the number of tasks, got {index}")
        index %= len(self)
        rows = slice(self._bounds[index], self._bounds[index + 1])
        return Episode(int(self.task_ids[index]), self._images[rows], self._labels[rows], self._support[rows])

    def __iter__(self) -> Iterator[Episode]:
        return (self[index] for index in range(len(self)))

    def image_ids(self) -> Ints:
        """Return every image that occurs, once, in rising order."""
        return np.unique(self._images)

    def support_ids(self) -> Ints:
        """Return every image that occurs as support, once, in rising order."""
        return np.unique(self._images[self._support])

    def rows(self) -> tuple[Ints, Ints, Ints, npt.NDArray[np.bool_]]:
        """Return each image's task position, image id, label, and whether it is support, task after task."""
        positions = np.repeat(np.arange(len(self)), np.diff(self._bounds))
        return positions, self._images, self._labels, self._support


@dataclass(frozen=True, kw_only=True)
class TaskGroup:
    """Hold t tasks of the same ways, with n support and q query images each.

    Attributes
    ----------
    positions : int64 (t,)
        Positions among all tasks.
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

    @property
    def images(self) -> Ints:
        """Support and then query images (t, n + q)."""
        return np.hstack([self.support, self.query])

    @property
    def labels(self) -> Ints:
        """Their labels (t, n + q)."""
        return np.hstack([self.support_labels, self.query_labels])

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, tasks: slice | Ints) -> "TaskGroup":
        """Return some of the tasks."""
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
    """Hold one row per image of a task, tasks one after the other.

    Attributes
    ----------
    position : int64 (r,)
        Position of the task among all, rising.
    image_ids, labels : int64 (r,)
    is_support : bool (r,)
    """

    position: Ints
    image_ids: Ints
    labels: Ints
    is_support: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, tasks: Episodes) -> "FlatTasks":
        """Flatten tasks in their order."""
        position, image_ids, labels, is_support = tasks.rows()
        return cls(position=position, image_ids=image_ids, labels=labels, is_support=is_support)

    def shots(self) -> Ints:
        """Count the support images of every class of every task, one class after the other."""
        counts: Ints = np.bincount(self._classes, self.is_support).astype(np.int64)
        return counts

    def first_shots(self, shots: int) -> "FlatTasks":
        """Return the tasks whose classes all have `shots` support images, with the first of these and all queries.

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
        """Group the tasks of the same ways and numbers of support and query images."""
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
        """Number of the class of its task for each row (r,), from 0 across tasks."""
        keys = self.position * (self.labels.max(initial=0) + 1) + self.labels
        return np.unique(keys, return_inverse=True)[1]
