"""Ridge regression as a differentiable base learner, one closed form for any task."""

import torch
from torch import Tensor
from torch.nn import functional as F


def ridge(features: Tensor, targets: Tensor, regularizer: float, *, normalize: bool = False) -> Tensor:
    r"""Weights of a ridge regression with a regularised intercept, in closed form (Eq. 5).

    With Z the features and a last column of ones, the minimiser of :math:`\|Z W - Y\|^2 + \lambda \|W\|^2` is

    .. math:: W = Z^\top (Z Z^\top + \lambda I)^{-1} Y = (Z^\top Z + \lambda I)^{-1} Z^\top Y.

    The dual on the left suits few samples of many dimensions, the usual task. With more samples than dimensions its
    smallest eigenvalues are lambda alone, which float32 cannot resolve beside large ones; then the primal is solved.
    Both are solved by Cholesky in float32, or in float64 where the features are, whatever the autocast type.

    Parameters
    ----------
    features : Tensor (n, m)
    targets : Tensor (n, k)
        One-hot labels.
    regularizer : float
        lambda, above 0.
    normalize : bool
        Read Eq. 5 literally, whose squared error is a mean: lambda is then multiplied by n.

    Returns
    -------
    Tensor (m + 1, k)
        The last row is the intercept.

    Raises
    ------
    ValueError
        The system is not positive definite in the features' precision (features NaN, infinite or far too large).
    """
    with torch.autocast(features.device.type, enabled=False):
        design = with_intercept(features.to(torch.promote_types(features.dtype, torch.float32)))
        targets = targets.to(design.dtype)
        scale = regularizer * (len(design) if normalize else 1)
        dual = design.shape[0] <= design.shape[1]
        gram = design @ design.T if dual else design.T @ design
        factor, failed = torch.linalg.cholesky_ex(
            gram + scale * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        )
        if failed:
            largest = float(design.detach().abs().max())
            raise ValueError(
                f"ridge: expected a positive definite system of {len(design)} samples, got one that is not (largest "
                f"feature {largest:.3g}, regularizer {regularizer:g}); raise embed.ridge or lower embed.learning_rate"
            )
        if dual:
            return design.T @ torch.cholesky_solve(targets, factor)
        return torch.cholesky_solve(design.T @ targets, factor)


def with_intercept(features: Tensor) -> Tensor:
    """Features (n, m) with a last column of ones (n, m + 1)."""
    return F.pad(features, (0, 1), value=1.0)


def ridge_query_loss(
    features: Tensor, labels: Tensor, is_support: Tensor, regularizer: float, *, normalize: bool = False
) -> tuple[Tensor, Tensor]:
    """Meta-learning loss of one task (Eq. 4): ridge on the support set, squared error on the query set.

    Parameters
    ----------
    features : Tensor (n, m)
        Of support and query images together.
    labels : Tensor (n,) of int64
        Local labels from 0.
    is_support : Tensor (n,) of bool
    regularizer, normalize
        As in `ridge`.

    Returns
    -------
    loss : Tensor ()
        Mean squared error of the query predictions to one-hot labels.
    accuracy : Tensor ()
        Share of query images whose largest output is their label.
    """
    targets = F.one_hot(labels).to(torch.float32)
    weights = ridge(features[is_support], targets[is_support], regularizer, normalize=normalize)
    outputs = with_intercept(features[~is_support].to(weights.dtype)) @ weights
    correct = outputs.argmax(1) == labels[~is_support]
    return F.mse_loss(outputs, targets[~is_support].to(weights.dtype)), correct.float().mean().detach()
