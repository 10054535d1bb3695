"""S2M2's pre-training: manifold mixup, and rotations to recognise (Mangla et al., 2020)."""

from typing import Any

import torch
from torch import Tensor

from mela.learners.method import Method
from mela.learners.mixing import Mix, mixed_features, mixed_loss
from mela.learners.rotating import RotationHead
from mela.runtime.compute import Run


class S2M2Learner(RotationHead):
    """Average the cross-entropies of all images as they are and mixed in pairs, and add `rotated_loss` of some."""

    def forward(self, images: Tensor, mix: Mix | None = None) -> Any:
        """Return the logits of labels and rotations (b, n_labels + 4) of images (b, c, h, w), mixed or not."""
        return self.heads(self.backbone(images) if mix is None else mixed_features(self.backbone, images, mix))

    def loss(self, run: Run, images: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the summed loss, and the logits of the images as they are; see `LabelLearner.loss`."""
        plain = run(images)[:, :-4]
        mixed, _ = mixed_loss(lambda batch, mix: run(batch, mix=mix)[:, :-4], self, images, targets, generator)
        loss = (self.cross_entropy(plain, targets) + mixed) / 2
        return loss + self.rotated_loss(run, images, targets, generator), plain


METHOD = Method(title="S2M2", source="Mangla et al., 2020", sees="labels", learner=S2M2Learner)
