"""LEO: classifiers that are found in a small space of codes (Rusu et al., 2019)."""

import math

import torch
from torch import Tensor, nn
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F

from mela.learners.base import Learner, prototypes, query_losses
from mela.learners.gradient import descend
from mela.learners.method import Method
from mela.models.backbones import Backbone

CODE = 64
STEPS = 5
DROP_RATE = 0.5
KL_WEIGHT = 1e-3
CODE_WEIGHT = 1e-9
ORTHOGONALITY_WEIGHT = 1e-3
SPREAD = 0.1


class LEO(Learner):
    """Classify fixed features linearly, with weights decoded from one code for each class.

    Comparisons of all pairs of support images give each class a normal distribution of codes. Five gradient steps
    on the support set's cross-entropy change the codes, five more the classifier itself; the rates of both are learned
    for each dimension. In training codes and classifiers are drawn; in testing they are the means.
    """

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone.requires_grad_(requires_grad=False))
        dimensions = backbone.dimensions
        self.encoder = nn.Linear(dimensions, CODE, bias=False)
        layers = [nn.Linear(2 * CODE, 2 * CODE, bias=False) for _ in range(3)]
        self.relations = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
        self.decoder = nn.Linear(CODE, 2 * dimensions, bias=False)
        for layer in (self.encoder, *layers, self.decoder):
            nn.init.xavier_uniform_(layer.weight)
        self.code_rate = nn.Parameter(torch.full((CODE,), 1.0))
        self.classifier_rate = nn.Parameter(torch.full((dimensions,), 0.001))
        self.drop = nn.Dropout(DROP_RATE)

    def train(self, mode: bool = True) -> "LEO":
        """Keep the embedding in evaluation mode."""
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (b, m) of length 1 of images (b, c, h, w)."""
        return F.normalize(self.backbone(images), dim=1)

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""
        return self.drop(query) @ self.classifiers(support, labels, ways)[0].mT

    def losses(self, features: Tensor, labels: Tensor, n_support: int, ways: int) -> tuple[Tensor, Tensor]:
        """Return the cross-entropies of the queries plus three penalties.

        They keep the codes near a standard normal, the first codes near the final ones, and the decoder's directions
        for the dimensions of a code apart.
        """
        own = labels[:, :n_support]
        classifiers, penalties = self.classifiers(features[:, :n_support], own, ways)
        logits = self.drop(features[:, n_support:]) @ classifiers.mT
        losses, accuracies = query_losses(logits, labels[:, n_support:])
        return losses + penalties + ORTHOGONALITY_WEIGHT * self._correlation(), accuracies

    def classifiers(self, support: Tensor, labels: Tensor, ways: int) -> tuple[Tensor, Tensor]:
        """Return weights (t, ways, m) and penalties on codes (t,) of support features (t, n, m), labels (t, n)."""
        learning = torch.is_grad_enabled() and self.training

        def loss_of(weights: Tensor) -> Tensor:
            logits = (self.drop(support) @ weights.mT).flatten(0, 1)
            return F.cross_entropy(logits, labels.flatten(), reduction="sum") * ways / support.shape[1]

        about = self._distribution(support, labels, ways)
        first = about.rsample() if self.training else about.mean
        codes = descend(first, lambda code: loss_of(self._decode(code)), self.code_rate, STEPS, learning=learning)
        found = descend(self._decode(codes), loss_of, self.classifier_rate, STEPS, learning=learning)
        divergence = kl_divergence(about, Normal(torch.zeros_like(first), torch.ones_like(first))).mean((1, 2))
        return found, KL_WEIGHT * divergence + CODE_WEIGHT * (codes.detach() - first).square().mean((1, 2))

    def _distribution(self, support: Tensor, labels: Tensor, ways: int) -> Normal:
        """Return the distribution of the codes (t, ways, CODE)."""
        codes = self.encoder(self.drop(support))
        pairs = codes[:, :, None].expand(-1, -1, codes.shape[1], -1), codes[:, None].expand(-1, codes.shape[1], -1, -1)
        relations = self.relations(torch.cat(pairs, dim=3)).mean(2)
        return _normal(prototypes(relations, labels, ways), SPREAD)

    def _decode(self, codes: Tensor) -> Tensor:
        """Decode codes (t, ways, CODE) to weights (t, ways, m)."""
        made = self.decoder(codes)
        about = _normal(made, math.sqrt(2 / (codes.shape[1] + made.shape[2] // 2)))
        return about.rsample() if self.training else about.mean

    def _correlation(self) -> Tensor:
        """Return the mean squared difference of the cosines of the decoder's directions from orthogonal ones."""
        cosines = F.normalize(self.decoder.weight, dim=0)
        return (cosines.T @ cosines - torch.eye(CODE, device=cosines.device)).square().mean()


def _normal(parameters: Tensor, spread: float) -> Normal:
    """Split the last dimension into means and logarithms of standard deviations / `spread`."""
    means, logarithms = parameters.chunk(2, dim=-1)
    # what is not finite shows in the loss, and training says so
    return Normal(means, spread * logarithms.clamp(-2, 2).exp(), validate_args=False)


METHOD = Method(title="LEO", source="Rusu et al., 2019", sees="tasks", learner=LEO)
