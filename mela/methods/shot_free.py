"""Shot-free: class models in a space of their own, found for any number of shots (Ravichandran et al., 2019)."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.learners.base import Learner, prototypes
from mela.learners.gradient import descend
from mela.learners.method import Method
from mela.models.backbones import Backbone

STEPS = 5


class ShotFree(Learner):
    r"""Logits are :math:`-s \|h(x) - c_k\|^2` with :math:`h(x) = W\psi(x) / \|W\psi(x)\|` in twice the dimensions.

    The class models c minimise the support set's cross-entropy: gradient steps lead to them from the means. The steps
    are differentiated through, and s and their rate are learned.
    """

    initial_scale = 10.0

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self.lift = nn.Linear(backbone.dimensions, 2 * backbone.dimensions, bias=False)
        self.rate = nn.Parameter(torch.tensor(0.1))

    def forward(self, images: Tensor) -> Tensor:
        """Return h (b, 2m) of images (b, c, h, w)."""
        return F.normalize(self.lift(self.backbone(images)), dim=1)

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""

        def loss_of(models: Tensor) -> Tensor:
            logits = self._logits(support, models).flatten(0, 1)
            return F.cross_entropy(logits, labels.flatten(), reduction="sum") / support.shape[1]

        learning = torch.is_grad_enabled() and self.training
        models = descend(prototypes(support, labels, ways), loss_of, self.rate, STEPS, learning=learning)
        return self._logits(query, models)

    def _logits(self, features: Tensor, models: Tensor) -> Tensor:
        """Return the logits of features (t, n, 2m) of length 1 for models (t, ways, 2m)."""
        return self.scale * (2 * features @ models.mT - models.square().sum(2)[:, None] - 1)


METHOD = Method(title="Shot-free", source="Ravichandran et al., 2019", sees="tasks", learner=ShotFree)
