"""Say how gradient descent goes: the optimizer, and how its learning rate falls."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler, MultiStepLR

from mela.errors import MelaError

# what is left of the learning rate after a share of all steps
SHARES: dict[str, Callable[[float], float]] = {
    "linear": lambda gone: 1 - gone,
    "cosine": lambda gone: (1 + math.cos(math.pi * gone)) / 2,
}


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Say how gradient descent goes, and how the learning rate falls.

    Attributes
    ----------
    epochs : int
    learning_rate, momentum, weight_decay : float
        With Adam, momentum is ignored and weights decay as in AdamW.
    milestones : sequence of int
        Epochs, counted from 1, after which the scheduler `multistep` multiplies the learning rate by `decay`.
    decay : float
    scheduler : {"multistep", "linear", "cosine"}
        With the last two the learning rate falls in every step, to 0 after the last one.
    nesterov : bool
        Whether momentum looks ahead (Nesterov, 1983); Adam ignores it.
    decay_norms : bool
        Whether vectors and numbers decay as well as matrices: biases, the weights of BatchNorm, scales.
    optimizer : {"sgd", "adam"}
    embedding_rate : float
        Share of the learning rate at which a pre-trained embedding, ``model.backbone``, learns.
    rate_name : str
        What errors call the learning rate, by default that of the stage.
    """

    epochs: int
    learning_rate: float
    momentum: float
    weight_decay: float
    milestones: Sequence[int]
    decay: float
    scheduler: Literal["multistep", "linear", "cosine"] = "multistep"
    nesterov: bool = False
    decay_norms: bool = True
    optimizer: Literal["sgd", "adam"] = "sgd"
    embedding_rate: float = 1.0
    rate_name: str = ""

    def optimizer_of(self, model: nn.Module) -> Optimizer:
        """Return the optimizer for the trainable parameters of a model."""
        learned, rate = self._groups(model), self.learning_rate
        if self.optimizer == "adam":
            return torch.optim.AdamW(learned, lr=rate, weight_decay=self.weight_decay)
        if self.optimizer == "sgd":
            how: dict[str, Any] = {"momentum": self.momentum, "nesterov": self.nesterov}
            return torch.optim.SGD(learned, lr=rate, weight_decay=self.weight_decay, **how)
        raise MelaError(
            f"optimizer of {type(model).__name__}: expected sgd or adam (which is AdamW), got {self.optimizer!r}; "
            "correct it"
        )

    def scheduler_of(self, optimizer: Optimizer, steps_per_epoch: int) -> "Scheduler":
        """Return what lowers the learning rate.

        Raises
        ------
        ValueError
            It falls in every step, and their number is not known.
        """
        if self.scheduler == "multistep":
            return Scheduler(MultiStepLR(optimizer, list(self.milestones), self.decay), every=0)
        if not steps_per_epoch:
            raise ValueError(f"steps_per_epoch: expected 1 or more with the scheduler {self.scheduler}, got 0; pass it")
        steps, share = max(1, self.epochs * steps_per_epoch), SHARES[self.scheduler]
        return Scheduler(LambdaLR(optimizer, lambda step: share(step / steps)), every=steps_per_epoch)

    def _groups(self, model: nn.Module) -> list[dict[str, Any]]:
        if self.embedding_rate == 1:
            return self._decaying({"params": list(model.parameters())})
        embedding = list(cast("nn.Module", model.backbone).parameters())
        known = {id(parameter) for parameter in embedding}
        new = [parameter for parameter in model.parameters() if id(parameter) not in known]
        slow = {"params": embedding, "lr": self.learning_rate * self.embedding_rate}
        return (self._decaying({"params": new}) if new else []) + self._decaying(slow)

    def _decaying(self, group: dict[str, Any]) -> list[dict[str, Any]]:
        """Set the vectors and numbers of a group apart, unless they decay as well."""
        if self.decay_norms:
            return [group]
        arrays = [parameter for parameter in group["params"] if parameter.ndim > 1]
        others = [parameter for parameter in group["params"] if parameter.ndim <= 1]
        parts = [group | {"params": arrays}, group | {"params": others, "weight_decay": 0.0}]
        return [part for part in parts if part["params"]]


@dataclass(frozen=True)
class Scheduler:
    """Lower the learning rate of an optimizer, after every step or after every epoch.

    Attributes
    ----------
    inner : LRScheduler
    every : int
        Steps of an epoch if it falls in every step, otherwise 0.
    """

    inner: LRScheduler
    every: int

    def after_step(self) -> None:
        """Lower the learning rate if it falls in every step."""
        if self.every:
            self.inner.step()

    def after_epoch(self) -> None:
        """Lower the learning rate if it falls after epochs."""
        if not self.every:
            self.inner.step()

    def rate(self, epochs: int) -> float:
        """Return the learning rate of the first weights at the beginning of the epoch that follows so many.

        It is asked for within this epoch.
        """
        if isinstance(self.inner, LambdaLR):
            return float(self.inner.base_lrs[0] * self.inner.lr_lambdas[0](epochs * self.every))
        return float(self.inner.optimizer.param_groups[0]["lr"])

    def resume(self, epochs: int, steps: int, rates: list[float]) -> None:
        """Go on after so many epochs and steps of the next, with the learning rates that the optimizer then had."""
        for group, rate in zip(self.inner.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        count = epochs * self.every + steps if self.every else epochs
        # one step more than were taken: PyTorch warns where none was, of an order that is right here
        reached = {"last_epoch": count, "_step_count": count + 2, "_last_lr": rates}
        self.inner.load_state_dict(self.inner.state_dict() | reached)
