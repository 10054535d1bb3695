"""Training on images alone: all methods that see neither labels nor tasks."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.augmentation import NONE
from mela.compute import Run
from mela.errors import MelaError
from mela.flat_training import Ints, train_on_images
from mela.image_learner import ImageLearner
from mela.training import Epoch, Training


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
            f"{training.stage}.accumulate: expected 1 for methods on images alone, which compare or remember whole "
            f"batches, got {training.accumulate}; set it to 1, or lower {training.stage}.batch_size"
        )

    def loss_of(run: Run, batch: Tensor, rows: Ints, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        del rows
        return learner.loss(run, batch, training.augmentation, generator)

    once = replace(training, augmentation=NONE)
    return train_on_images(learner, images, image_ids, loss_of, once, batch_size=batch_size)
