"""Fine-tuning on tasks for the head that is used in the end: cosines to class means (Chen et al., 2021)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.backbones import Backbone
from mela.learner import Learner, prototypes
from mela.method import Method


class CosineLearner(Learner):
    r"""Logits are :math:`s \cos(\psi(x), c_k)` with the class means c, and s learned; for pre-trained embeddings."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self.scale = nn.Parameter(torch.tensor(10.0))

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Logits (t, q, ways); see `Learner.logits`."""
        means = prototypes(F.normalize(support, dim=2), labels, ways)
        return self.scale * (F.normalize(query, dim=2) @ F.normalize(means, dim=2).mT)


METHOD = Method(title="fine-tuned", source="Chen et al., 2021", sees="tasks", learner=CosineLearner)
