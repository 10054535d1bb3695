"""Training on single images: the loop of pre-training, and of all methods that see labels or images alone."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mela.augmentation import Augmentation
from mela.checkpoints import Checkpoint
from mela.compute import Compute, Run
from mela.images import ImageLoader, require_images
from mela.training import Epoch, Part, Schedule, batch_count, fit, require_share, shuffled_batches
from mela.watching import SILENT, Watch

Ints = npt.NDArray[np.int64]
LossOf = Callable[[Run, Tensor, Ints, torch.Generator], tuple[Tensor, Tensor]]


def train_on_images(
    learner: nn.Module,
    images: npt.NDArray[np.uint8],
    image_ids: Ints,
    loss_of: LossOf,
    *,
    stage: str,
    augmentation: Augmentation,
    schedule: Schedule,
    batch_size: int,
    accumulate: int = 1,
    seed: int,
    compute: Compute | None = None,
    checkpoint: Checkpoint | None = None,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
    watch: Watch = SILENT,
) -> list[Epoch]:
    """Train `learner` in place and return its curve.

    Parameters
    ----------
    learner : nn.Module
        All that learns.
    images : uint8 (N, h, w, c)
    image_ids : int64 (n,)
        Each once.
    loss_of : callable
        Takes `learner` as a function in the number format of the training, augmented images (b, c, h, w), float in
        [0, 1], their rows in `image_ids` (b,), and a generator on the CPU of all that is drawn; gives the sum of the
        images' losses, and whether the learner got each of them right (b,).
    stage : str
        Block of parameters that errors name.
    augmentation : Augmentation
    schedule : Schedule
    batch_size : int
    accumulate : int
        Parts into which a batch is cut, to be computed one after the other with less memory; their gradients add up.
        Each part has BatchNorm statistics of its own.
    seed : int
        Of the order, augmentation, dropout and what the method draws.
    compute : Compute, optional
        Number format and processes; by default float32 in this process alone.
    checkpoint : Checkpoint, optional
        See `mela.training.fit`.
    on_epoch : callable
        Told of every finished epoch.
    watch : Watch
        Counts steps.
    """
    require_images(images, image_ids)
    compute = compute or Compute()
    n_images = len(image_ids)
    n_steps = batch_count(n_images, batch_size)
    require_share(f"{stage}.batch_size", n_images // n_steps, accumulate, compute.team, things="images")
    generator = torch.Generator().manual_seed(seed)
    load = ImageLoader(images, next(learner.parameters()).device)
    run = compute.forward_of(learner)

    def parts(chosen: Tensor) -> Iterator[Part]:
        for part in chosen.tensor_split(accumulate):
            own = compute.team.share(len(part))
            rows = part[own].numpy()
            batch = augmentation.draw(len(part), generator)[own](load(image_ids[rows]))
            loss, right = loss_of(run, batch, rows, generator)
            yield loss / len(chosen), right.sum() / len(chosen)

    def epoch_steps() -> Iterator[Iterator[Part]]:
        return map(parts, shuffled_batches(n_images, batch_size, generator))

    return fit(
        learner,
        epoch_steps,
        schedule,
        stage=stage,
        seed=seed,
        generator=generator,
        team=compute.team,
        checkpoint=checkpoint,
        on_epoch=on_epoch,
        steps_per_epoch=n_steps,
        watch=watch,
    )
