"""Training on images with global labels: the loop of pre-training and of all methods that see such labels."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.augmentation import Augmentation
from mela.checkpoints import Checkpoint
from mela.compute import Compute
from mela.images import ImageLoader, require_images
from mela.label_learner import LabelLearner
from mela.targets import Targets
from mela.training import Epoch, Part, Schedule, batch_count, fit, require_share, shuffled_batches
from mela.watching import SILENT, Watch


def train_on_labels(
    learner: LabelLearner,
    images: npt.NDArray[np.uint8],
    targets: Targets,
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
    learner : LabelLearner
    images : uint8 (N, h, w, c)
    targets : Targets
        The flat data set.
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
    require_images(images, targets.image_ids)
    compute = compute or Compute()
    n_images = len(targets.image_ids)
    n_steps = batch_count(n_images, batch_size)
    require_share(f"{stage}.batch_size", n_images // n_steps, accumulate, compute.team, things="images")
    generator = torch.Generator().manual_seed(seed)
    device = next(learner.parameters()).device
    load = ImageLoader(images, device)
    run = compute.forward_of(learner)

    def parts(chosen: Tensor) -> Iterator[Part]:
        for part in chosen.tensor_split(accumulate):
            own = compute.team.share(len(part))
            rows = part[own].numpy()
            batch = augmentation.draw(len(part), generator)[own](load(targets.image_ids[rows]))
            label = torch.from_numpy(targets.labels[rows]).to(device)
            loss, logits = learner.loss(run, batch, targets.batch(rows).to(device), generator)
            yield loss / len(chosen), (logits.detach().argmax(1) == label).sum() / len(chosen)

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
