"""Meta-learning the initial embedding from locally labelled tasks (Eq. 4-5)."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.augmentation import Augmentation
from mela.backbones import Backbone
from mela.episodes import Episodes
from mela.errors import MelaError
from mela.images import load_batch
from mela.ridge import ridge_query_loss
from mela.training import Epoch, Schedule, fit


def train_embedding(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    tasks: Episodes,
    *,
    augmentation: Augmentation,
    schedule: Schedule,
    tasks_per_epoch: int | None,
    ridge: float,
    normalize: bool,
    seed: int,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> list[Epoch]:
    """Train `backbone` in place, one task per step, and return its curve.

    Support and query images of a task go through the backbone as one batch; ridge regression on the support set
    predicts the query set; the squared error is the loss.

    Parameters
    ----------
    backbone : Backbone
    images : uint8 (N, h, w, c)
    tasks : Episodes
        With support and query images; ways and shots may differ.
    augmentation : Augmentation
    schedule : Schedule
    tasks_per_epoch : int or None
        Tasks of an epoch, drawn anew without repetition for each; None takes all.
    ridge, normalize
        See `mela.ridge.ridge`.
    seed : int
        Of task order, augmentation and dropout.
    on_epoch : callable
        Told of every finished epoch.
    """
    if not len(tasks):
        raise MelaError("train manifest: expected at least one task, found none")
    if tasks_per_epoch is not None and tasks_per_epoch > len(tasks):
        raise MelaError(
            f"embed.tasks_per_epoch: expected at most {len(tasks)}, the number of training tasks, got {tasks_per_epoch}"
        )
    generator = torch.Generator().manual_seed(seed)
    device = next(backbone.parameters()).device

    def epoch_losses() -> Iterator[tuple[Tensor, Tensor]]:
        for index in torch.randperm(len(tasks), generator=generator)[:tasks_per_epoch].tolist():
            task = tasks[index]
            batch = augmentation(load_batch(images, task.image_ids, device), generator)
            labels = torch.tensor(task.labels, device=device)
            is_support = torch.tensor(task.is_support, device=device)
            try:
                yield ridge_query_loss(backbone(batch), labels, is_support, ridge, normalize=normalize)
            except ValueError as error:
                raise MelaError(f"embed: task {task.task_id}: {error}") from None

    return fit(backbone, epoch_losses, schedule, stage="embed", seed=seed, on_epoch=on_epoch)
