"""Compute both sides of Proposition 1: the loss on tasks, and the global loss that bounds it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.data.array_types import Ints
from mela.data.episodes import Episodes, FlatTasks
from mela.errors import MelaError
from mela.models.backbones import Backbone
from mela.models.features import extract_features
from mela.training.targets import Targets

BLOCK_BYTES = 2**27


def both_losses(
    backbone: Backbone,
    classifier: nn.Linear,
    images: npt.NDArray[np.uint8],
    tasks: Episodes,
    targets: Targets,
) -> "Proposition1":
    """Return `proposition1` of a trained embedding and its classifier, in evaluation mode and without augmentation.

    Of an image with several labels, the one with the largest share counts.
    """
    features = torch.from_numpy(extract_features(backbone, images, targets.image_ids))
    rows = pd.Index(targets.image_ids)
    weights, bias = classifier.weight.detach().cpu(), classifier.bias.detach().cpu()

    def logits(ids: Ints) -> Tensor:
        return F.linear(features[rows.get_indexer(pd.Index(ids))], weights, bias)

    return proposition1(logits, tasks, targets.image_ids, targets.labels)


@dataclass(frozen=True)
class Proposition1:
    """Hold the mean cross-entropy over tasks: over each task's own classes, and over all global classes."""

    task_loss: float
    global_loss: float


def proposition1(logits: Callable[[Ints], Tensor], tasks: Episodes, image_ids: Ints, labels: Ints) -> Proposition1:
    r"""Return both sides of Proposition 1 (Eq. 9) on the query sets of `tasks`.

    .. math:: E_{(X, Y)} [L_{ce}(W[Y], (\psi(X), Y))] \le E_{(x, y)} [\ell_{ce}(W \psi(x), y)]

    The classes of a task are the distinct global labels of its query images. Both sides are averaged over tasks, which
    is the mean over samples when all query sets have one size.

    Parameters
    ----------
    logits : callable
        int64 (n,) image ids to float (n, n_labels): W psi(x).
    tasks : Episodes
    image_ids, labels : int64 (n_labelled,)
        Images without a label are left out, and so are tasks whose query images have none.
    """
    task, query, own = _labelled_queries(tasks, image_ids, labels)
    if not len(query):
        raise MelaError(
            "pretrain: no query image of the training tasks has a label; rerun the stage that infers these labels"
        )
    bounds = np.append(np.flatnonzero(np.diff(task, prepend=-1)), len(task))
    sums, count = np.zeros(2), len(bounds) - 1
    # logits of float32 for all queries of so many tasks
    some = max(1, BLOCK_BYTES // (4 * int(np.diff(bounds).max()) * (int(labels.max()) + 1)))
    for first in range(0, count, some):
        rows = slice(bounds[first], bounds[min(first + some, count)])
        sums += _loss_sums(logits, np.unique(task[rows], return_inverse=True)[1], query[rows], own[rows])
    task_loss, global_loss = (sums / count).tolist()
    return Proposition1(task_loss, global_loss)


def _labelled_queries(tasks: Episodes, image_ids: Ints, labels: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the task (rising), image and label of all query images that have a label."""
    rows = FlatTasks.of(tasks)
    own = pd.Index(image_ids).get_indexer(pd.Index(rows.image_ids))
    chosen = ~rows.is_support & (own >= 0)
    return rows.position[chosen], rows.image_ids[chosen], labels[own[chosen]]


def _loss_sums(logits: Callable[[Ints], Tensor], task: Ints, query: Ints, own: Ints) -> npt.NDArray[np.float64]:
    """Sum both sides of Eq. 9 over some tasks (numbered from 0) whose queries have the labels `own`."""
    images, row = np.unique(query, return_inverse=True)
    outputs = logits(images)
    pairs = np.unique(np.stack([task, own], axis=1), axis=0)
    ways = np.bincount(pairs[:, 0])
    # the classes of each task, the rest filled with its first one, which then does not count
    classes = np.repeat(pairs[np.cumsum(ways) - ways, 1][:, None], ways.max(), axis=1)
    column = np.arange(len(pairs)) - np.repeat(np.cumsum(ways) - ways, ways)
    classes[pairs[:, 0], column] = pairs[:, 1]
    unused = torch.from_numpy(np.arange(ways.max()) >= ways[task][:, None]).to(outputs.device)
    restricted = outputs[row[:, None], classes[task]].masked_fill(unused, -torch.inf).logsumexp(1)
    target = outputs[row, own]
    losses = torch.stack([restricted - target, outputs.logsumexp(1)[row] - target]).double().cpu().numpy()
    return np.array([(np.bincount(task, loss) / np.bincount(task)).sum() for loss in losses])
