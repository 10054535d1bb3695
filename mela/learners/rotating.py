"""Recognise rotations beside the classes (Gidaris, Singh and Komodakis, 2018; as S2M2 uses them)."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.learners.base import LabelLearner
from mela.models.backbones import Backbone
from mela.runtime.compute import Run


class RotationHead(LabelLearner):
    """Classify labels and the four rotations; logits of rotations come last."""

    turns_images = True

    def __init__(self, backbone: Backbone, n_labels: int) -> None:
        super().__init__(backbone, n_labels)
        self.rotations = nn.Linear(backbone.dimensions, 4)

    def heads(self, features: Tensor) -> Any:
        """Return the logits (b, n_labels + 4) of features (b, m)."""
        return torch.cat([self.classifier(features), self.rotations(features)], dim=1)

    def rotated_loss(self, run: Run, images: Tensor, targets: Tensor, generator: torch.Generator) -> Tensor:
        """Return the mean loss of class and rotation of a quarter of the images, turned four ways, times their number.

        Parameters are those of `loss`.
        """
        quarter = torch.randperm(len(images), generator=generator)[: -(-len(images) // 4)].to(images.device)
        turned = torch.cat([images[quarter].rot90(turns, (2, 3)) for turns in range(4)])
        turns = torch.arange(4, device=images.device).repeat_interleave(len(quarter))
        outputs, own = run(turned), torch.cat([targets[quarter]] * 4)
        classes = self.cross_entropy(outputs[:, :-4], own, reduction="mean")
        return len(images) * (classes + F.cross_entropy(outputs[:, -4:], turns)) / 2
