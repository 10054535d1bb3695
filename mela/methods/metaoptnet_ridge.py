"""MetaOptNet with a ridge head: R2-D2 with a fixed regulariser (Lee et al., 2019)."""

from torch import Tensor

from mela.learners.base import Learner
from mela.learners.method import Method
from mela.learners.ridge import ridge_outputs


class MetaOptNetRidge(Learner):
    r"""Logits are :math:`s\, x W`, W being the weights of ridge regression with :math:`\lambda = 50` and s learned."""

    initial_scale = 3.0
    regularizer: float = 50.0

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""
        return self.scale * ridge_outputs(support, labels, query, ways, self.regularizer)


METHOD = Method(title="MetaOptNet (ridge)", source="Lee et al., 2019", sees="tasks", learner=MetaOptNetRidge)
