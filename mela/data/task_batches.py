"""Deal labelled images to batches by the tasks that they are from."""

import numpy as np
import torch
from torch import Tensor

from mela.data.array_types import Ints

# images of each class of a task in a batch, where classes are equally large
SHOTS = 2


class TaskBatches:
    """Deal n images to batches, so that a batch has images of several classes of each of its tasks.

    The images of a task are dealt to portions of about two images per class, and a batch is made of whole portions.
    If its classes are equally large, a portion has images of all of them. In any case it has two classes or more, but
    where a task has one class only.

    Parameters
    ----------
    tasks, labels : int64 (n,)
        Images of a task that share a label, which is from 0, are one class.
    batch_size : int
        Images of a batch, on average about as many, but at least a portion.

    Attributes
    ----------
    count : int
        Batches of an epoch.
    """

    def __init__(self, tasks: Ints, labels: Ints, batch_size: int) -> None:
        of_image, n_labels = np.unique(tasks, return_inverse=True)[1], int(labels.max()) + 1
        classes, self._classes = np.unique(of_image * n_labels + labels, return_inverse=True)
        self._sizes = np.bincount(self._classes)
        self._firsts = np.cumsum(self._sizes) - self._sizes
        task = classes // n_labels
        ways = np.bincount(task)
        portions = np.bincount(task, self._sizes).astype(np.int64) // (SHOTS * ways)
        # the second largest class has an image in each portion
        largest = self._sizes[np.lexsort((-self._sizes, task))]
        second = np.minimum(np.cumsum(ways) - ways + 1, len(largest) - 1)
        portions = np.maximum(1, np.where(ways > 1, np.minimum(portions, largest[second]), portions))
        self._portions, self._offsets = portions[task], (np.cumsum(portions) - portions)[task]
        self._n_portions = int(portions.sum())
        # a single image, which BatchNorm could not take, must have no batch of its own
        alone = bool((np.bincount(task, self._sizes) == 1).any())
        self.count = max(1, min(-(-len(tasks) // batch_size), self._n_portions // (2 if alone else 1)))

    def draw(self, generator: torch.Generator) -> list[Tensor]:
        """Return the positions of the images in each batch of an epoch; each image is in one."""
        drawn = torch.randperm(len(self._classes), generator=generator).numpy()
        order = drawn[np.argsort(self._classes[drawn], kind="stable")]
        classes = self._classes[order]
        rank = np.arange(len(order)) - self._firsts[classes]
        portion = self._offsets[classes] + rank * self._portions[classes] // self._sizes[classes]
        place = torch.randperm(self._n_portions, generator=generator).numpy()[portion]
        ends = np.cumsum(np.bincount(place, minlength=self._n_portions))
        last = [part[-1] for part in np.array_split(np.arange(self._n_portions), self.count)[:-1]]
        rows = order[np.argsort(place, kind="stable")]
        return [torch.from_numpy(batch) for batch in np.split(rows, ends[last])]
