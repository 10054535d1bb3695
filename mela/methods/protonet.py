"""Prototypical networks: the nearest class mean (Snell, Swersky and Zemel, 2017)."""

from torch import Tensor

from mela.learners.base import Learner, prototypes
from mela.learners.method import Method


class ProtoNet(Learner):
    r"""Logits are the negative squared distances to the class means, :math:`-\|\psi(x) - c_k\|^2`."""

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""
        means = prototypes(support, labels, ways)
        return 2 * query @ means.mT - means.square().sum(2)[:, None] - query.square().sum(2, keepdim=True)


METHOD = Method(title="ProtoNet", source="Snell et al., 2017", sees="tasks", learner=ProtoNet)
