"""Self-distillation: labels and what a former generation says of the images (RFS-distill; Tian et al., 2020)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from mela.errors import MelaError
from mela.learners.base import LabelLearner
from mela.learners.method import Method
from mela.runtime.compute import Run

TEMPERATURE = 4.0


class DistillLearner(LabelLearner):
    r"""Average the cross-entropy to the labels and the divergence from a teacher's classes at temperature T = 4.

    .. math:: \tfrac12 L_{ce} + \tfrac12 T^2 KL(\mathrm{softmax}(t / T) \| \mathrm{softmax}(s / T))

    with t and s the logits of teacher and student.
    """

    _teacher: tuple[LabelLearner, ...] = ()

    def learn_from(self, teacher: LabelLearner) -> None:
        """Take a teacher, which does not change and is not trained."""
        # in a tuple, where torch does not take it for a part of this module
        self._teacher = (teacher.eval().requires_grad_(requires_grad=False),)

    def loss(self, run: Run, images: Tensor, targets: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the summed loss and the logits; see `LabelLearner.loss`."""
        if not self._teacher:
            raise MelaError("distill: expected a teacher, got none; give the former generation's model with --teacher")
        hard, logits = super().loss(run, images, targets, generator)
        with torch.no_grad():
            wanted = (self._teacher[0].logits(images) / TEMPERATURE).log_softmax(1)
        soft = F.kl_div((logits / TEMPERATURE).log_softmax(1), wanted, reduction="sum", log_target=True)
        return (hard + TEMPERATURE**2 * soft) / 2, logits


METHOD = Method(title="distilled", source="Tian et al., 2020", sees="labels", learner=DistillLearner)
