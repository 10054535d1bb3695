"""Training on images alone: all methods that see neither labels nor tasks."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.augmentation import NONE, Augmentation
from mela.compute import Run
from mela.flat_training import Ints, train_on_images
from mela.image_learner import ImageLearner
from mela.training import Epoch


def train_without_labels(
    learner: ImageLearner, images: npt.NDArray[np.uint8], image_ids: Ints, augmentation: Augmentation, **training: Any
) -> list[Epoch]:
    """Train `learner` in place and return its curve.

    Parameters
    ----------
    learner : ImageLearner
    images : uint8 (N, h, w, c)
    image_ids : int64 (n,)
        Each once.
    augmentation : Augmentation
        Of every view, each by itself.
    **training
        All else that `mela.flat_training.train_on_images` takes.
    """

    def loss_of(run: Run, batch: Tensor, rows: Ints, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        del rows
        return learner.loss(run, batch, augmentation, generator)

    return train_on_images(learner, images, image_ids, loss_of, augmentation=NONE, **training)
