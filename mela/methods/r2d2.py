"""R2-D2: ridge regression with a learned regulariser (Bertinetto et al., 2019)."""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from mela.learners.base import Learner
from mela.learners.method import Method
from mela.learners.ridge import ridge_outputs
from mela.models.backbones import Backbone


class R2D2(Learner):
    r"""Logits are :math:`\alpha\, x W + \beta`, W being ridge regression's weights for the learned :math:`\lambda`.

    Training lowers lambda only a little, so that its start matters: it is the best one on validation tasks. The
    authors' code uses 50 for means over the support set, which is 1,250 for sums over 25 images, and does not learn it.
    """

    initial_scale = 3.0
    initial_lambda: ClassVar[float] = 500.0

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self.log_lambda = nn.Parameter(torch.tensor(math.log(self.initial_lambda), dtype=torch.float32))
        self.shift = nn.Parameter(torch.zeros(()))

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""
        return self.scale * ridge_outputs(support, labels, query, ways, self.log_lambda.exp()) + self.shift


METHOD = Method(title="R2-D2", source="Bertinetto et al., 2019", sees="tasks", learner=R2D2)
