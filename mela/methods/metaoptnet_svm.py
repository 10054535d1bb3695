"""MetaOptNet with a multi-class support vector machine (Lee et al., 2019)."""

import torch
from torch import Tensor

from mela.errors import UnsolvableError
from mela.learners.base import Learner, one_hot
from mela.learners.method import Method

STEPS = 500
EPSILON = 1e-5


class MetaOptNetSVM(Learner):
    r"""Logits are :math:`s\, x W`, W being Crammer and Singer's machine on the support set (C = 0.1) and s learned.

    Its dual, with :math:`K = X X^\top + r I` of the support set X and Y its one-hot labels, in :math:`B = C Y - A`:

    .. math:: \min_A \tfrac12 \langle A, K A \rangle - \langle A, Y \rangle \quad
        \text{with } B \ge 0,\ B \mathbf 1 = C \mathbf 1, \qquad W = X^\top A.

    It is solved by projected gradients. Where B is above 0 the solution solves a linear system, through which it is
    differentiated.

    The ridge r is 1, as in the authors' code. It gives each support image a dimension of its own, in which no query
    has a part. Without it, the machine can separate every support set, even one with a useless embedding.

    Attributes
    ----------
    ridge : float
        The r that is added to the diagonal of the Gram matrix, 0 or more.
    """

    initial_scale = 3.0
    regularizer: float = 0.1
    ridge: float = 1.0

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways); see `Learner.logits`."""
        targets = one_hot(labels, ways, support.dtype)
        gram = support @ support.mT
        gram = gram + self.ridge * torch.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
        dual = solve(gram, targets, free_variables(gram.detach(), targets, self.regularizer), self.regularizer)
        return self.scale * (query @ (support.mT @ dual))


def free_variables(gram: Tensor, targets: Tensor, C: float) -> Tensor:
    """Find which entries of B are above 0 at the optimum (t, n, k), by accelerated projected gradients (FISTA).

    Raises
    ------
    UnsolvableError
        The features are NaN, infinite or far too large.
    """
    finite = gram.flatten(1).isfinite().all(1)
    norms = torch.linalg.matrix_norm(gram, ord=2) if finite.all() else gram.new_zeros(len(gram))
    finite &= norms.isfinite()
    if not finite.all():
        raise UnsolvableError(
            int((~finite).nonzero()[0]),
            "the support vector machine failed, since inner products of features are NaN, infinite or too large",
        )
    step = 1 / norms.clamp(min=EPSILON)[:, None, None]
    slack = ahead = torch.full_like(targets, C / targets.shape[2])
    momentum = 1.0
    for _ in range(STEPS):
        gradient = targets - gram @ (C * targets - ahead)
        moved = to_simplex(ahead - step * gradient, C)
        faster = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = moved + (momentum - 1) / faster * (moved - slack)
        slack, momentum = moved, faster
    return slack > EPSILON * C


def to_simplex(points: Tensor, total: float) -> Tensor:
    """Return the nearest points (..., k) with entries from 0 that sum to `total` (Held, Wolfe and Crowder, 1974)."""
    ordered = points.sort(dim=-1, descending=True).values
    excess = ordered.cumsum(-1) - total
    counts = torch.arange(1, points.shape[-1] + 1, device=points.device)
    last = (ordered * counts > excess).sum(-1, keepdim=True)
    return (points - excess.gather(-1, last - 1) / last).clamp(min=0)


def solve(gram: Tensor, targets: Tensor, free: Tensor, C: float) -> Tensor:
    """Return the dual solution A (t, n, k) by the Gram matrices (t, n, n), given which entries of B are above 0.

    Where B is 0, A is C Y; elsewhere the gradient of the objective is one number for each image, and rows sum to 0.
    """
    t, n, k = targets.shape
    mask = free.to(gram.dtype).flatten(1)
    unit = torch.eye(n * k, device=gram.device, dtype=gram.dtype)
    blocks = torch.einsum("tij,kl->tikjl", gram, unit[:k, :k]).reshape(t, n * k, n * k)
    # rows of variables that are free: K A - Y + multiplier = 0; of the others: A = C Y
    upper = mask[:, :, None] * (blocks + EPSILON * unit) + (1 - mask)[:, :, None] * unit
    sums = unit.view(n * k, n, k).sum(2).expand(t, -1, -1)
    system = torch.cat(
        [
            torch.cat([upper, mask[:, :, None] * sums], dim=2),
            torch.cat([sums.mT, torch.zeros(t, n, n, device=gram.device, dtype=gram.dtype)], dim=2),
        ],
        dim=1,
    )
    wanted = torch.where(free, targets, C * targets).flatten(1)
    right = torch.cat([wanted, torch.zeros(t, n, device=gram.device, dtype=gram.dtype)], dim=1)
    return torch.linalg.solve(system, right[:, :, None])[:, : n * k, 0].view(t, n, k)


METHOD = Method(title="MetaOptNet (SVM)", source="Lee et al., 2019", sees="tasks", learner=MetaOptNetSVM)
