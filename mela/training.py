"""Stochastic gradient descent with step decays: the loop that both trainings share."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mela.errors import MelaError
from mela.seeding import seeded


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """SGD settings; the learning rate is multiplied by `decay` after each epoch in `milestones` (counted from 1)."""

    epochs: int
    learning_rate: float
    momentum: float
    weight_decay: float
    milestones: Sequence[int]
    decay: float


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One row of a training curve: means over the epoch's steps; accuracy in percent."""

    epoch: int
    loss: float
    accuracy: float
    learning_rate: float


def fit(
    model: nn.Module,
    epoch_losses: Callable[[], Iterable[tuple[Tensor, Tensor]]],
    schedule: Schedule,
    *,
    stage: str,
    seed: int,
    on_epoch: Callable[[Epoch], None] = lambda epoch: None,
) -> list[Epoch]:
    """Train `model` in place and return its curve.

    Parameters
    ----------
    model : nn.Module
        Everything that learns.
    epoch_losses : callable
        One epoch: yields (loss, accuracy in [0, 1]) of each step, computed lazily with the weights of that moment.
    schedule : Schedule
    stage : str
        Params block named in errors.
    seed : int
        Of dropout; torch's global generators are left as they were.
    on_epoch : callable
        Told of every finished epoch.

    Raises
    ------
    MelaError
        The loss became NaN or infinite; names epoch and step.
    """
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=schedule.learning_rate,
        momentum=schedule.momentum,
        weight_decay=schedule.weight_decay,
    )
    decays = torch.optim.lr_scheduler.MultiStepLR(optimizer, list(schedule.milestones), schedule.decay)
    curve = []
    with seeded(seed):
        model.train()
        for epoch in range(1, schedule.epochs + 1):
            learning_rate = float(optimizer.param_groups[0]["lr"])
            total = torch.zeros(2, dtype=torch.float64)
            steps = 0
            for loss, accuracy in epoch_losses():
                value = loss.item()
                steps += 1
                if not math.isfinite(value):
                    raise MelaError(
                        f"{stage}: epoch {epoch}, step {steps}: expected a finite loss, got {value}; "
                        f"lower {stage}.learning_rate (now {learning_rate:g})"
                    )
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
                total += torch.tensor([value, accuracy.item()], dtype=torch.float64)
            decays.step()
            loss_mean, accuracy_mean = (total / steps).tolist()
            curve.append(Epoch(epoch=epoch, loss=loss_mean, accuracy=100 * accuracy_mean, learning_rate=learning_rate))
            on_epoch(curve[-1])
    model.eval()
    return curve


def print_epoch(stage: str, epochs: int) -> Callable[[Epoch], None]:
    """A line for every finished epoch."""

    def show(epoch: Epoch) -> None:
        print(
            f"{stage}: epoch {epoch.epoch}/{epochs}: loss {epoch.loss:.4f}, training accuracy {epoch.accuracy:.1f}%, "
            f"learning rate {epoch.learning_rate:g}",
            flush=True,
        )

    return show


def shuffled_batches(count: int, batch_size: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Positions 0 to count - 1 in random order, in ceil(count / batch_size) batches whose sizes differ by one at most.

    Nothing is dropped and no batch is left with a single image, which BatchNorm could not take: an odd count in batches
    of two has one of three.
    """
    n_batches = max(1, min(-(-count // batch_size), count // 2))
    return iter(torch.tensor_split(torch.randperm(count, generator=generator), n_batches))
