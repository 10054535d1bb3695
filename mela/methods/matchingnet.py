"""Matching networks: attention over the support images (Vinyals et al., 2016), without full context embeddings."""

from torch import Tensor
from torch.nn import functional as F

from mela.learners.base import Learner, one_hot
from mela.learners.method import Method

SMALLEST = 1e-6


class MatchingNet(Learner):
    r"""The probability of a class is the attention to its images, a softmax of the cosines :math:`s \cos(x, x_i)`.

    The scale s, 1 in the paper, is learned, since cosines alone cannot tell five classes apart with any certainty.
    """

    initial_scale = 30.0

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the log-probabilities (t, q, ways); see `Learner.logits`."""
        cosines = F.normalize(query, dim=2) @ F.normalize(support, dim=2).mT
        attention = (self.scale * cosines).softmax(2)
        return (attention @ one_hot(labels, ways)).clamp(min=SMALLEST).log()


METHOD = Method(title="MatchingNet", source="Vinyals et al., 2016", sees="tasks", learner=MatchingNet)
