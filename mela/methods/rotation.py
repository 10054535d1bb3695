"""Pre-training with rotations to recognise (Gidaris, Singh and Komodakis, 2018)."""

from typing import Any

import torch
from torch import Tensor

from mela.learners.method import Method
from mela.learners.rotating import RotationHead
from mela.runtime.compute import Run


class RotationLearner(RotationHead):
    """Sum the cross-entropy of all images, and `rotated_loss` of some."""

    def forward(self, images: Tensor) -> Any:
        """Return the logits of labels and rotations (b, n_labels + 4) of images (b, c, h, w)."""
        return self.heads(self.backbone(images))

    def loss(self, run: Run, images: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the summed loss, and the logits of the upright images; see `LabelLearner.loss`."""
        upright = run(images)[:, :-4]
        loss = self.cross_entropy(upright, targets)
        return loss + self.rotated_loss(run, images, targets, generator), upright


METHOD = Method(title="rotation", source="Gidaris et al., 2018", sees="labels", learner=RotationLearner)
