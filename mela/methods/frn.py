"""Feature map reconstruction networks (Wertheimer, Tang and Hariharan, 2021)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.learners.base import Learner, query_losses
from mela.learners.method import Method
from mela.models.backbones import Backbone

APART = 0.03
POOLING = (nn.Flatten, nn.AdaptiveAvgPool2d)


class FRN(Learner):
    r"""Classify a query by how well its map can be rebuilt from the vectors of a class's maps.

    With S (n r, d) the vectors of a class, Q (r, d) those of a query,

    .. math:: \bar Q = \rho\, Q (S^\top S + \lambda I)^{-1} S^\top S, \qquad
        \text{logit} = -\frac{\gamma}{r} \|Q - \bar Q\|^2, \qquad \lambda = \frac{n r}{d} e^\alpha,\ \rho = e^\beta

    with alpha, beta, gamma learned. A second loss keeps the classes' vectors apart from each other.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        layers = list(backbone.body.children())
        while isinstance(layers[-1], POOLING):
            layers.pop()
        self.layers = len(layers)
        self.alpha = nn.Parameter(torch.zeros(()))
        self.beta = nn.Parameter(torch.zeros(()))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, images: Tensor) -> Tensor:
        """Return the vectors (b, r, d) of the last maps of images (b, c, h, w), scaled by 1 / sqrt(d)."""
        maps = self.backbone.normalized(images)
        for layer in list(self.backbone.body.children())[: self.layers]:
            maps = layer(maps)
        return maps.flatten(2).mT / maps.shape[1] ** 0.5

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""
        found = []
        for vectors, own, asked in zip(support, labels, query, strict=True):
            rebuilt = torch.stack([self._rebuilt(vectors[own == label].flatten(0, 1), asked) for label in range(ways)])
            found.append(-self.gamma * (rebuilt - asked).square().sum(3).mean(2).T)
        return torch.stack(found)

    def _rebuilt(self, vectors: Tensor, query: Tensor) -> Tensor:
        """Rebuild queries (q, r, d) from the vectors (s, d) of a class."""
        with torch.autocast(query.device.type, enabled=False):
            vectors, query = vectors.float(), query.float()
            count, dimensions = vectors.shape
            gram = vectors.T @ vectors
            unit = torch.eye(dimensions, device=gram.device)
            hat = torch.linalg.solve(gram + count / dimensions * self.alpha.exp() * unit, gram)
            return self.beta.exp() * query @ hat

    def losses(self, features: Tensor, labels: Tensor, n_support: int, ways: int) -> tuple[Tensor, Tensor]:
        """Return the queries' cross-entropies plus 0.03 of how alike the vectors of different classes are."""
        support, own = features[:, :n_support], labels[:, :n_support]
        losses, accuracies = query_losses(
            self.checked_logits(support, own, features[:, n_support:], ways), labels[:, n_support:]
        )
        directions = F.normalize(support, dim=3).flatten(1, 2)
        of_class = own.repeat_interleave(support.shape[2], dim=1)
        others = of_class[:, :, None] != of_class[:, None]
        alike = ((directions @ directions.mT).square() * others).sum((1, 2)) / others.sum((1, 2))
        return losses + APART * alike, accuracies


METHOD = Method(title="FRN", source="Wertheimer et al., 2021", sees="tasks", learner=FRN)
