"""R2-D2: ridge regression with a learned regulariser (Bertinetto et al., 2019)."""

import torch
from torch import Tensor, nn

from mela.backbones import Backbone
from mela.learner import Learner
from mela.method import Method
from mela.ridge import ridge_outputs


class R2D2(Learner):
    r"""Logits are :math:`\alpha\, x W + \beta`, W being ridge regression's weights for the learned :math:`\lambda`."""

    initial_scale = 3.0

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self.log_lambda = nn.Parameter(torch.zeros(()))
        self.shift = nn.Parameter(torch.zeros(()))

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Logits (t, q, ways); see `Learner.logits`."""
        return self.scale * ridge_outputs(support, labels, query, ways, self.log_lambda.exp()) + self.shift


METHOD = Method(title="R2-D2", source="Bertinetto et al., 2019", sees="tasks", learner=R2D2)
