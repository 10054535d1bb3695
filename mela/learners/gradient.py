"""Adapt learners to a task by steps of gradient descent."""

from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from mela.learners.base import Learner
from mela.models.backbones import Backbone


class SupportBatchNorm(nn.BatchNorm2d):
    """Normalise by the statistics of a support set: the first `n_support` images of a batch.

    So query images do not influence each other, and training and testing do the same (as in MetaBN; Bronskill et al.,
    2020). If `n_support` is None it is plain BatchNorm, with running statistics in evaluation mode.
    """

    n_support: int | None = None

    def forward(self, maps: Tensor) -> Tensor:
        """Return the normalised maps (b, c, h, w)."""
        if self.n_support is None:
            return super().forward(maps)
        support = maps[: self.n_support]
        mean, variance = support.mean((0, 2, 3)), support.var((0, 2, 3), unbiased=False)
        if self.training and self.running_mean is not None and self.running_var is not None:
            self.running_mean.lerp_(mean.detach(), self.momentum or 0.1)
            self.running_var.lerp_(variance.detach(), self.momentum or 0.1)
        scale = self.weight / (variance + self.eps).sqrt()
        return maps * scale[:, None, None] + (self.bias - mean * scale)[:, None, None]


class GradientLearner(Learner):
    r"""Adapt learned weights to each task by gradient descent on the cross-entropy of its support set.

    .. math:: \theta_{i+1} = \theta_i - \eta \nabla_{\theta_i} L_{ce}(\theta_i; S)

    The linear classifier on top starts at zero (Kao, Chiu and Chen, 2022), so that any number of ways works, and the
    order of a task's labels makes no difference; the first step changes only the classifier.

    Parameters
    ----------
    backbone : Backbone

    Attributes
    ----------
    adapts : {"all", "head"}
        What the steps change.
    first_order : bool
        Whether the steps count as constants when their outcome is differentiated.
    steps, test_steps : int
        Numbers of steps in training, and in testing (those of Finn et al.).
    rate : float
        eta.
    """

    adapts: ClassVar[Literal["all", "head"]] = "all"
    first_order: ClassVar[bool] = False
    steps: ClassVar[int] = 5
    test_steps: ClassVar[int] = 10
    rate: ClassVar[float] = 0.01

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self.norms = [module for module in backbone.modules() if isinstance(module, nn.BatchNorm2d)]
        for module in self.norms:
            module.__class__ = SupportBatchNorm

    def forward(self, images: Tensor) -> Tensor:
        """Return the images unchanged; the features depend on the task."""
        return images

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways) of images (t, q, c, h, w); see `Learner.logits`."""
        learning = torch.is_grad_enabled() and self.training
        with torch.enable_grad():
            found = [self._adapted(*task, ways) for task in zip(support, labels, query, strict=True)]
        return torch.stack(found) if learning else torch.stack(found).detach()

    def _adapted(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (q, ways) of one task."""
        like = next(self.backbone.parameters())
        weights = {"head": like.new_zeros(ways, self.backbone.dimensions), "bias": like.new_zeros(ways)}
        weights = {name: value.requires_grad_() for name, value in weights.items()}
        if self.adapts == "all":
            weights |= dict(self.backbone.named_parameters())
        second_order = self.training and not self.first_order
        # as the network's weights lie in memory, which is twice as fast
        images = torch.cat([support, query]).contiguous(memory_format=torch.channels_last)
        support = images[: len(support)]
        known = None if self.adapts == "all" else self._features({}, images, len(support))
        for _ in range(self.steps if self.training else self.test_steps):
            features = self._features(weights, support, len(support)) if known is None else known[: len(support)]
            loss = F.cross_entropy(F.linear(features, weights["head"], weights["bias"]), labels)
            gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=second_order, retain_graph=True)
            weights = {
                name: value - self.rate * gradient
                for (name, value), gradient in zip(weights.items(), gradients, strict=True)
            }
        features = self._features(weights, images, len(support)) if known is None else known
        return F.linear(features[len(support) :], weights["head"], weights["bias"])

    def _features(self, weights: dict[str, Tensor], images: Tensor, n_support: int) -> Tensor:
        """Return the features (b, m) of images, the first of which are the support set, by the given weights."""
        body = {name: value for name, value in weights.items() if name not in ("head", "bias")}
        for norm in self.norms:
            norm.n_support = n_support  # type: ignore[assignment]
        try:
            features: Tensor = functional_call(self.backbone, body, (images,))
        finally:
            for norm in self.norms:
                norm.n_support = None  # type: ignore[assignment]
        return features


def descend(
    start: Tensor, loss_of: Callable[[Tensor], Tensor], rate: Tensor | float, steps: int, *, learning: bool
) -> Tensor:
    r"""Take gradient steps :math:`x_{i+1} = x_i - \eta \nabla L(x_i)`.

    Parameters
    ----------
    start : Tensor
        x_0.
    loss_of : callable
        L, to a scalar.
    rate : Tensor or float
        eta, of x's shape up to broadcasting.
    steps : int
    learning : bool
        Whether the outcome can be differentiated; otherwise it is detached.
    """
    with torch.enable_grad():
        found = start if start.requires_grad else start.detach().requires_grad_()
        for _ in range(steps):
            (gradient,) = torch.autograd.grad(loss_of(found), found, create_graph=learning)
            found = found - rate * gradient
            if not learning:
                found = found.detach().requires_grad_()
    return found if learning else found.detach()
