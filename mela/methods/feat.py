"""FEAT: class means that take notice of each other through self-attention (Ye et al., 2020)."""

import torch
from torch import Tensor, nn

from mela.learners.base import Learner, prototypes, query_losses
from mela.learners.method import Method
from mela.models.backbones import Backbone

TEMPERATURE = 64.0
BALANCE = 0.1


class SetTransformer(nn.Module):
    """Add one head of attention among the vectors of a set to them, and normalise.

    Parameters
    ----------
    dimensions : int
        m.
    drop_rate : float
    """

    def __init__(self, dimensions: int, drop_rate: float = 0.5) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(dimensions, 1, bias=False, batch_first=True)
        self.drop = nn.Dropout(drop_rate)
        self.norm = nn.LayerNorm(dimensions)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the transformed sets (b, k, m)."""
        mixed, _ = self.attention(vectors, vectors, vectors, need_weights=False)
        changed: Tensor = self.norm(vectors + self.drop(mixed))
        return changed


class FEAT(Learner):
    r"""Logits are :math:`-\|\psi(x) - T(c)_k\|^2 / 64`, T being a `SetTransformer` of the class means c.

    A second loss lets T see the images of one class together, and pulls each image to the mean of its class.
    """

    learning_rate = 0.001

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self.transformer = SetTransformer(backbone.dimensions)

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""
        adapted: Tensor = self.transformer(prototypes(support, labels, ways))
        return -torch.cdist(query, adapted).square() / TEMPERATURE

    def losses(self, features: Tensor, labels: Tensor, n_support: int, ways: int) -> tuple[Tensor, Tensor]:
        """Return the queries' cross-entropies plus a tenth of those of all images with the means of whole classes."""
        losses, accuracies = super().losses(features, labels, n_support, ways)
        centres = torch.stack([self._centres(*task, ways) for task in zip(features, labels, strict=True)])
        logits = -torch.cdist(features, centres).square() / TEMPERATURE
        return losses + BALANCE * query_losses(logits, labels)[0], accuracies

    def _centres(self, features: Tensor, labels: Tensor, ways: int) -> Tensor:
        """Return the class means (ways, m) of one task (n, m) whose images have seen each other."""
        every = [self.transformer(features[None, labels == label])[0] for label in range(ways)]
        return torch.stack([images.mean(0) for images in every])


METHOD = Method(title="FEAT", source="Ye et al., 2020", sees="tasks", learner=FEAT)
