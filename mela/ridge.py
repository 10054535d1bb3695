"""Ridge regression as a differentiable base learner, one closed form for any task."""

import torch
from torch import Tensor
from torch.nn import functional as F


def ridge(features: Tensor, targets: Tensor, regularizer: float, *, normalize: bool = False) -> Tensor:
    r"""Weights of a ridge regression with a regularised intercept, solved in the dual (Eq. 5).

    With Z the features and a last column of ones,

    .. math:: W = Z^\top (Z Z^\top + \lambda I)^{-1} Y,

    the minimiser of :math:`\|Z W - Y\|^2 + \lambda \|W\|^2`. The n x n system suits few samples of many dimensions.
    It is solved by Cholesky in float32, or in float64 where the features are, whatever the autocast type.

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
        gram = design @ design.T
        scale = regularizer * (len(design) if normalize else 1)
        factor, failed = torch.linalg.cholesky_ex(
            gram + scale * torch.eye(len(design), dtype=gram.dtype, device=gram.device)
        )
        if failed:
            largest = float(design.detach().abs().max())
            raise ValueError(
                f"ridge: expected a positive definite system of {len(design)} samples, got one that is not "
                f"(largest feature {largest:.3g}, regularizer {regularizer:g}); "
                "raise embed.ridge or lower embed.learning_rate"
            )
        return design.T @ torch.cholesky_solve(targets, factor)


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
