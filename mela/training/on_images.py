"""Train on a flat data set: images with global labels, or images alone."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mela.data.array_types import Ints
from mela.data.augmentation import NONE
from mela.data.images import ImageLoader, require_images
from mela.data.quarter_turns import quarter_turned
from mela.data.task_batches import TaskBatches
from mela.errors import MelaError
from mela.learners.base import ImageLearner, LabelLearner
from mela.learners.contract import pair_of, require_tensor
from mela.runtime.compute import Run
from mela.training.loop import Epoch, Part, Training, batch_count, fit, require_share, shuffled_batches
from mela.training.targets import Targets

LossOf = Callable[[Run, Tensor, Ints, torch.Generator], tuple[Tensor, Tensor]]


def train_on_images(
    learner: nn.Module,
    images: npt.NDArray[np.uint8],
    image_ids: Ints,
    loss_of: LossOf,
    training: Training,
    *,
    batch_size: int,
    turns: Ints | None = None,
    batches: TaskBatches | None = None,
) -> list[Epoch]:
    """Train `learner` in place and return its curve.

    Parameters
    ----------
    learner : nn.Module
        All that learns.
    images : uint8 (N, h, w, c)
    image_ids : int64 (n,)
    loss_of : callable
        Takes `learner` as a function in the number format of the training, augmented images (b, c, h, w), float in
        [0, 1], their rows in `image_ids` (b,), and a generator on the CPU of all that is drawn; gives the sum of the
        images' losses, and whether the learner got each of them right (b,).
    training : Training
    batch_size : int
    turns : int64 (n,), optional
        Quarter turns of each image, after its random changes.
    batches : TaskBatches, optional
        Batches by tasks, in place of images at random.

    Raises
    ------
    MelaError
        Images are missing, or `loss_of` gives something else.
    DivergedError
        The loss or the weights are not finite.
    """
    require_images(images, image_ids)
    compute, accumulate = training.compute, training.accumulate
    n_images = len(image_ids)
    n_steps = batch_count(n_images, batch_size) if batches is None else batches.count
    require_share(f"{training.stage}.batch_size", n_images // n_steps, accumulate, compute.team, things="images")
    generator = torch.Generator().manual_seed(training.seed)
    load = ImageLoader(images, next(learner.parameters()).device)
    run = compute.forward_of(learner)

    def parts(chosen: Tensor) -> Iterator[Part]:
        for part in chosen.tensor_split(accumulate):
            own = compute.team.share(len(part))
            rows, whole = part[own].numpy(), load(image_ids[part.numpy()])
            batch = training.augmentation.draw(len(part), generator)[own](whole[own], whole)
            if turns is not None:
                batch = quarter_turned(batch, torch.from_numpy(turns[rows]))
            loss, right = _checked(learner, loss_of(run, batch, rows, generator), len(rows))
            yield loss / len(chosen), right.sum() / len(chosen)

    def epoch_steps() -> Iterator[Iterator[Part]]:
        if batches is None:
            return map(parts, shuffled_batches(n_images, batch_size, generator))
        return map(parts, batches.draw(generator))

    return fit(learner, epoch_steps, training, generator=generator, steps_per_epoch=n_steps)


def _checked(learner: nn.Module, found: object, n_images: int) -> tuple[Tensor, Tensor]:
    """Raise MelaError unless there is one loss, and for each image whether it is right."""
    loss, right = pair_of(learner, "loss", found, "a loss, and whether each image is right")
    return (
        require_tensor(learner, "loss", loss, "the sum of the images' losses", (), learned=True),
        require_tensor(learner, "loss", right, "whether each image is right", (n_images,)),
    )


def train_on_labels(
    learner: LabelLearner,
    images: npt.NDArray[np.uint8],
    targets: Targets,
    training: Training,
    *,
    batch_size: int,
) -> list[Epoch]:
    """Train `learner` in place and return its curve.

    Parameters
    ----------
    learner : LabelLearner
        Of as many labels as the targets have. If these have tasks, its `forward` takes the tasks of a batch.
    images : uint8 (N, h, w, c)
    targets : Targets
        The flat data set, or what `trained_targets` makes of it.
    training : Training
    batch_size : int

    Raises
    ------
    MelaError
        Images are missing, or the method makes something else than a loss and logits. Targets are of rotated classes,
        but the method rotates images itself. Targets have tasks, but batches are to be divided.
    DivergedError
        The loss or the weights are not finite.
    """
    device, n_labels = next(learner.parameters()).device, learner.classifier.out_features
    if targets.turns is not None and learner.turns_images:
        raise MelaError(
            f"{training.stage}.rotated_classes: expected false with {type(learner).__name__}, which rotates images "
            "itself; set it to false, or train another method"
        )
    batches = None
    if targets.tasks is not None:
        if training.accumulate > 1 or training.compute.team.size > 1:
            raise MelaError(
                f"{training.stage}: expected whole batches with centered tasks, got {training.accumulate} parts and "
                f"{training.compute.team.size} processes; set pretrain.accumulate and runtime.processes to 1"
            )
        batches = TaskBatches(targets.tasks, targets.labels, batch_size)

    def loss_of(run: Run, batch: Tensor, rows: Ints, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        label = torch.from_numpy(targets.labels[rows]).to(device)
        if targets.tasks is not None:
            run = partial(run, tasks=torch.from_numpy(targets.tasks[rows]).to(device))
        made = learner.loss(run, batch, targets.batch(rows).to(device), generator)
        loss, logits = pair_of(learner, "loss", made, "a loss and logits")
        logits = require_tensor(learner, "loss", logits, "logits (images, labels)", (len(rows), n_labels))
        return loss, logits.detach().argmax(1) == label

    how: dict[str, Any] = {"batch_size": batch_size, "turns": targets.turns, "batches": batches}
    return train_on_images(learner, images, targets.image_ids, loss_of, training, **how)


def trained_targets(targets: Targets, training: Training) -> Targets:
    """Return what a training learns of targets: these, or those of rotated classes."""
    return targets.rotated() if training.rotated_classes else targets


def train_without_labels(
    learner: ImageLearner, images: npt.NDArray[np.uint8], image_ids: Ints, training: Training, *, batch_size: int
) -> list[Epoch]:
    """Train `learner` in place and return its curve.

    Parameters
    ----------
    learner : ImageLearner
    images : uint8 (N, h, w, c)
    image_ids : int64 (n,)
        Each once.
    training : Training
        Every view of an image is augmented by itself. A batch is computed as a whole, since methods compare its images
        with each other, or remember them for the next.
    batch_size : int

    Raises
    ------
    MelaError
        Batches are to be computed in parts.
    """
    if training.accumulate > 1:
        raise MelaError(
            f"{training.stage}.accumulate is {training.accumulate}, but methods on images alone need whole batches; "
            f"set it to 1, and lower {training.stage}.batch_size if memory is short"
        )

    def loss_of(run: Run, batch: Tensor, rows: Ints, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        del rows
        return learner.loss(run, batch, training.augmentation, generator)

    once = replace(training, augmentation=NONE)
    return train_on_images(learner, images, image_ids, loss_of, once, batch_size=batch_size)
