"""Pre-training with manifold mixup (Verma et al., 2019)."""

from typing import Any

import torch
from torch import Tensor

from mela.learners.base import LabelLearner
from mela.learners.method import Method
from mela.learners.mixing import Mix, mixed_features, mixed_loss
from mela.runtime.compute import Run


class MixupLearner(LabelLearner):
    """Average the cross-entropies of all images as they are, and mixed in pairs."""

    def forward(self, images: Tensor, mix: Mix | None = None) -> Any:
        """Return the logits (b, n_labels) of images (b, c, h, w), mixed or not."""
        return self.classifier(self.backbone(images) if mix is None else mixed_features(self.backbone, images, mix))

    def loss(self, run: Run, images: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the summed loss, and the logits of the images as they are; see `LabelLearner.loss`."""
        plain = run(images)
        mixed, _ = mixed_loss(run, self, images, targets, generator)
        return (self.cross_entropy(plain, targets) + mixed) / 2, plain


METHOD = Method(title="manifold mixup", source="Verma et al., 2019", sees="labels", learner=MixupLearner)
