"""Training on images with global labels: pre-training, and all methods that see such labels."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.compute import Run
from mela.flat_training import Ints, train_on_images
from mela.label_learner import LabelLearner
from mela.made import pair_of, require_tensor
from mela.targets import Targets
from mela.training import Epoch, Training


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
    images : uint8 (N, h, w, c)
    targets : Targets
        The flat data set.
    training : Training
    batch_size : int

    Raises
    ------
    MelaError
        Images are missing, or the method makes something else than a loss and logits.
    DivergedError
        The loss or the weights are not finite.
    """
    device, n_labels = next(learner.parameters()).device, learner.classifier.out_features

    def loss_of(run: Run, batch: Tensor, rows: Ints, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        label = torch.from_numpy(targets.labels[rows]).to(device)
        made = learner.loss(run, batch, targets.batch(rows).to(device), generator)
        loss, logits = pair_of(learner, "loss", made, "a loss and logits")
        logits = require_tensor(learner, "loss", logits, "logits (images, labels)", (len(rows), n_labels))
        return loss, logits.detach().argmax(1) == label

    return train_on_images(learner, images, targets.image_ids, loss_of, training, batch_size=batch_size)
