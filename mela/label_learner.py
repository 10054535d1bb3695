"""What learns from images with global labels: an embedding with a linear classifier on top."""

from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.backbones import Backbone
from mela.compute import Run


class LabelLearner(nn.Module):
    r"""Classifies all global labels at once, :math:`W \psi(x) + b` (Eq. 7); methods say how the loss differs.

    Parameters
    ----------
    backbone : Backbone
    n_labels : int
    """

    def __init__(self, backbone: Backbone, n_labels: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = nn.Linear(backbone.dimensions, n_labels)

    def forward(self, images: Tensor) -> Any:
        """Images (b, c, h, w), float in [0, 1], to logits (b, n_labels), or to all that the loss needs."""
        return self.classifier(self.backbone(images))

    def logits(self, images: Tensor) -> Tensor:
        """Logits (b, n_labels) of images (b, c, h, w)."""
        logits: Tensor = self.classifier(self.backbone(images))
        return logits

    def loss(self, run: Run, images: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Loss of a batch: by default the cross-entropy.

        Parameters
        ----------
        run : callable
            `forward`, in the number format of the training.
        images : Tensor (b, c, h, w)
            Augmented, float in [0, 1].
        targets : Tensor (b,) of int64 or (b, n_labels)
            Labels, or shares of several.
        generator : Generator
            On the CPU, of all that is drawn.

        Returns
        -------
        loss : Tensor ()
            Summed over the images.
        logits : Tensor (b, n_labels)
            By which the training accuracy is measured.
        """
        del generator
        logits = run(images)
        return F.cross_entropy(logits, targets, reduction="sum"), logits


@runtime_checkable
class Student(Protocol):
    """A method that learns from another model besides."""

    def learn_from(self, teacher: LabelLearner) -> None:
        """Take a teacher, which stays as it is and is no part of what is learned."""
