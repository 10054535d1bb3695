"""Tasks of a manifest as arrays, whatever their ways and shots."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Episode:
    """One task of n images.

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
    image_ids: Ids
    labels: Ids
    is_support: npt.NDArray[np.bool_]


class Episodes(Sequence[Episode]):
    """The tasks of a manifest in the order of their ids.

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
        """The task at a position (a slice gives a list)."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"expected a position below {len(self)}, the number of tasks, got {index}")
        index %= len(self)
        rows = slice(self._bounds[index], self._bounds[index + 1])
        return Episode(int(self.task_ids[index]), self._images[rows], self._labels[rows], self._support[rows])

    def __iter__(self) -> Iterator[Episode]:
        return (self[index] for index in range(len(self)))

    def image_ids(self) -> Ids:
        """Every image that occurs, once, in rising order."""
        return np.unique(self._images)

    def support_ids(self) -> Ids:
        """Every image that occurs as support, once, in rising order."""
        return np.unique(self._images[self._support])

    def rows(self) -> tuple[Ids, Ids, Ids, npt.NDArray[np.bool_]]:
        """Of all images, task after task: position of the task, image id, label, and whether it is support."""
        positions = np.repeat(np.arange(len(self)), np.diff(self._bounds))
        return positions, self._images, self._labels, self._support
