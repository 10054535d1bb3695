"""Gradient descent inside of a method, which can be differentiated itself."""

from collections.abc import Callable

import torch
from torch import Tensor


def descend(
    start: Tensor, loss_of: Callable[[Tensor], Tensor], rate: Tensor | float, steps: int, *, learning: bool
) -> Tensor:
    r"""Steps :math:`x_{i+1} = x_i - \eta \nabla L(x_i)`.

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
