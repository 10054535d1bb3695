"""Fine-tuning on tasks for the head that is used in the end: cosines to class means (Chen et al., 2021)."""

from torch import Tensor
from torch.nn import functional as F

from mela.learners.base import Learner, prototypes
from mela.learners.method import Method


class CosineLearner(Learner):
    r"""Logits are :math:`s \cos(\psi(x), c_k)` with the class means c, and s learned; for pre-trained embeddings."""

    initial_scale = 10.0

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""
        means = prototypes(F.normalize(support, dim=2), labels, ways)
        return self.scale * (F.normalize(query, dim=2) @ F.normalize(means, dim=2).mT)


METHOD = Method(title="fine-tuned", source="Chen et al., 2021", sees="tasks", learner=CosineLearner)
