"""MetaOptNet with a ridge head: R2-D2 with a fixed regulariser (Lee et al., 2019)."""

import torch
from torch import Tensor, nn

from mela.backbones import Backbone
from mela.learner import Learner, one_hot
from mela.method import Method
from mela.ridge import ridge, with_intercept

REGULARIZER = 50.0


class MetaOptNetRidge(Learner):
    r"""Logits are :math:`s\, x W`, W being the weights of ridge regression with :math:`\lambda = 50` and s learned."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self.scale = nn.Parameter(torch.tensor(10.0))

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Logits (t, q, ways); see `Learner.logits`."""
        weights = ridge(support, one_hot(labels, ways), REGULARIZER)
        return self.scale * (with_intercept(query) @ weights)


METHOD = Method(title="MetaOptNet (ridge)", source="Lee et al., 2019", sees="tasks", learner=MetaOptNetRidge)
