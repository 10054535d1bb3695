"""Solve ridge regression in closed form, and meta-learn an embedding with it (Eq. 4-5)."""

import torch
from torch import Tensor
from torch.nn import functional as F

from mela.errors import UnsolvableError
from mela.learners.base import Learner
from mela.models.backbones import Backbone


def ridge(features: Tensor, targets: Tensor, regularizer: float | Tensor, *, normalize: bool = False) -> Tensor:
    r"""Return the weights of a ridge regression with a regularised intercept, in closed form (Eq. 5).

    With Z the features and a last column of ones, the minimiser of :math:`\|Z W - Y\|^2 + \lambda \|W\|^2` is

    .. math:: W = Z^\top (Z Z^\top + \lambda I)^{-1} Y = (Z^\top Z + \lambda I)^{-1} Z^\top Y.

    The dual on the left suits few samples of many dimensions, the usual task. With more samples than dimensions its
    smallest eigenvalues are lambda alone, which float32 cannot resolve beside large ones; then the primal is solved.
    Both are solved by Cholesky in float32, or in float64 where the features are, whatever the autocast type.

    Parameters
    ----------
    features : Tensor (..., n, m)
        Features of one problem or, with leading dimensions, of several.
    targets : Tensor (..., n, k)
        One-hot labels.
    regularizer : float or Tensor ()
        lambda, above 0; may be learned.
    normalize : bool
        Read Eq. 5 literally, whose squared error is a mean: lambda is then multiplied by n.

    Returns
    -------
    Tensor (..., m + 1, k)
        The last row is the intercept.

    Raises
    ------
    UnsolvableError
        A system is not positive definite in the features' precision (features NaN, infinite or far too large).
    """
    with torch.autocast(features.device.type, enabled=False):
        design = with_intercept(features.to(torch.promote_types(features.dtype, torch.float32)))
        targets = targets.to(design.dtype)
        n, m = design.shape[-2:]
        scale = regularizer * (n if normalize else 1)
        dual = n <= m
        gram = design @ design.mT if dual else design.mT @ design
        factor, failed = torch.linalg.cholesky_ex(
            gram + scale * torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        )
        if failed.any():
            problem = int(failed.flatten().nonzero()[0])
            largest = float(design.detach().reshape(-1, n, m)[problem].abs().max())
            raise UnsolvableError(
                problem,
                f"ridge regression on {n} samples failed (largest feature {largest:.3g}, regularizer "
                f"{float(torch.as_tensor(regularizer).detach()):g})",
            )
        if dual:
            return design.mT @ torch.cholesky_solve(targets, factor)
        return torch.cholesky_solve(design.mT @ targets, factor)


def with_intercept(features: Tensor) -> Tensor:
    """Append a column of ones to features (..., n, m): (..., n, m + 1)."""
    return F.pad(features, (0, 1), value=1.0)


def ridge_outputs(
    support: Tensor,
    labels: Tensor,
    query: Tensor,
    ways: int,
    regularizer: float | Tensor,
    *,
    normalize: bool = False,
) -> Tensor:
    """Predict one-hot labels of queries by ridge regression on the support sets of t tasks.

    Parameters
    ----------
    support, query : Tensor (t, n, m), (t, q, m)
    labels : Tensor (t, n) of int64
        0 to ways - 1.
    ways : int
    regularizer, normalize
        As in `ridge`.

    Returns
    -------
    Tensor (t, q, ways)
    """
    weights = ridge(support, F.one_hot(labels, ways).to(torch.float32), regularizer, normalize=normalize)
    return with_intercept(query.to(weights.dtype)) @ weights


def ridge_query_losses(
    features: Tensor,
    labels: Tensor,
    ways: int,
    n_support: int,
    regularizer: float,
    *,
    normalize: bool = False,
    hinge: float = 0.0,
    consistency: float = 0.0,
) -> tuple[Tensor, Tensor]:
    r"""Return the meta-learning losses (Eq. 4): ridge on the support set, squared error on the query set.

    Two further losses can be added, as in the authors' later work; their exact form is this project's. The first is
    `pairwise_hinge` of the outputs. The second asks that support and query set lead to the same classifier: with the
    weights of ridge regressions on either, it is :math:`|W_S - W_Q|^2 / K`.

    Parameters
    ----------
    features : Tensor (t, n, m)
        Features of each task's support images, followed by its query images.
    labels : Tensor (t, n) of int64
        Local labels, 0 to ways - 1.
    ways, n_support : int
    regularizer, normalize
        As in `ridge`.
    hinge, consistency : float, default=0
        Weights of the further losses.

    Returns
    -------
    losses : Tensor (t,)
        Mean squared error of each task's query predictions to one-hot labels, and what is added.
    accuracies : Tensor (t,)
        Share of the query images whose largest output is their label.
    """
    targets, query, asked = F.one_hot(labels, ways).to(torch.float32), features[:, n_support:], labels[:, n_support:]
    weights = ridge(features[:, :n_support], targets[:, :n_support], regularizer, normalize=normalize)
    outputs = with_intercept(query.to(weights.dtype)) @ weights
    losses = (outputs - F.one_hot(asked, ways).to(outputs.dtype)).square().mean((1, 2))
    if hinge:
        losses = losses + hinge * pairwise_hinge(outputs, asked)
    if consistency:
        apart = weights - ridge(query, targets[:, n_support:], regularizer, normalize=normalize)
        losses = losses + consistency * apart.square().sum((1, 2)) / ways
    return losses, (outputs.argmax(2) == asked).float().mean(1).detach()


def pairwise_hinge(outputs: Tensor, labels: Tensor) -> Tensor:
    r"""Return the mean of :math:`\max(0, 1 - o_y + o_k)` over images, of class y, and the other classes k.

    Parameters
    ----------
    outputs : Tensor (t, q, K)
    labels : Tensor (t, q) of int64

    Returns
    -------
    Tensor (t,)
    """
    margins = F.relu(1 - outputs.gather(2, labels[..., None]) + outputs)
    # without those of a class to itself, which are 1
    return (margins.sum(2) - 1).mean(1) / (outputs.shape[2] - 1)


class RidgeLearner(Learner):
    """Fit ridge regression to the support set, with the squared error on the query set as the loss.

    Parameters
    ----------
    backbone : Backbone
    ridge, normalize
        See `mela.learners.ridge.ridge`.
    hinge, consistency
        See `ridge_query_losses`.
    """

    regularizer: float
    remedy = "raise embed.ridge"

    def __init__(
        self, backbone: Backbone, ridge: float, *, normalize: bool, hinge: float = 0.0, consistency: float = 0.0
    ) -> None:
        super().__init__(backbone)
        self.regularizer, self.normalize = ridge, normalize
        self.hinge, self.consistency = hinge, consistency

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Predict one-hot labels by ridge regression."""
        return ridge_outputs(support, labels, query, ways, self.regularizer, normalize=self.normalize)

    def losses(self, features: Tensor, labels: Tensor, n_support: int, ways: int) -> tuple[Tensor, Tensor]:
        """Return `mela.learners.ridge.ridge_query_losses`."""
        return ridge_query_losses(
            features,
            labels,
            ways,
            n_support,
            self.regularizer,
            normalize=self.normalize,
            hinge=self.hinge,
            consistency=self.consistency,
        )
