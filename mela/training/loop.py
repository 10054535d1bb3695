"""Define the loop that all trainings share: gradient descent with a falling learning rate.

The loop is the project's own, since an interrupted training resumes within an epoch and ends with the same bits. For
this, all random draws have to be known in one place.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from mela.data.augmentation import NONE, Augmentation
from mela.errors import DivergedError, MelaError
from mela.runtime.compute import Compute
from mela.runtime.console import log
from mela.runtime.progress import SILENT, Watch
from mela.runtime.seeding import seeded
from mela.runtime.team import ALONE, Team
from mela.training.checkpoint import Checkpoint
from mela.training.losses import Tally
from mela.training.resume import Position, Progress
from mela.training.schedule import Schedule

PATIENCE = 32


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """Hold one row of a training curve: means over the epoch's steps, and the learning rate at its beginning.

    Accuracy is in percent.
    """

    epoch: int
    loss: float
    accuracy: float
    learning_rate: float


def tell_nobody(epoch: Epoch) -> None:
    """Ignore a finished epoch."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """Hold the settings of a training that do not depend on the model or the loss.

    Attributes
    ----------
    stage : str
        Block of parameters that errors name.
    schedule : Schedule
    seed : int
        Seed of order, augmentation, dropout and a method's draws; torch's global generators do not change.
    augmentation : Augmentation
        Random changes of the images.
    rotated_classes : bool
        Whether a class in each of its four rotations is a class of its own. For labels, an epoch then has every image
        four times. The classes of a task are turned at random, each by itself. Methods on images alone have no classes.
    accumulate : int
        Parts into which a step is cut, to be computed one after the other with less memory; their gradients add up.
        Each part has BatchNorm statistics of its own.
    compute : Compute
        Number format, and the processes that train together, whose gradients are means over all.
    checkpoint : Checkpoint, optional
        Keeps the state of the training; an interrupted training resumes from it, with the result that it would have
        had.
    on_epoch : callable
        Called with the means of each epoch when it ends; in the first process only.
    watch : Watch
        Counts steps.
    """

    stage: str
    schedule: Schedule
    seed: int
    augmentation: Augmentation = NONE
    rotated_classes: bool = False
    accumulate: int = 1
    compute: Compute = field(default_factory=Compute)
    checkpoint: Checkpoint | None = None
    on_epoch: Callable[[Epoch], None] = tell_nobody
    watch: Watch = SILENT

    @property
    def advice(self) -> str:
        """What to do if the training diverges, as errors say it."""
        name = self.schedule.rate_name or f"{self.stage}.learning_rate"
        return f"lower {name} (now {self.schedule.learning_rate:g})"


Part = tuple[Tensor, Tensor]


def curve_table(curve: Sequence[Epoch]) -> pd.DataFrame:
    """Return a table with a row for every epoch."""
    return pd.DataFrame(curve, columns=[column.name for column in fields(Epoch)])


def fit(
    model: nn.Module,
    epoch_steps: Callable[[], Iterable[Iterable[Part]]],
    training: Training,
    *,
    generator: torch.Generator | None = None,
    steps_per_epoch: int = 0,
) -> list[Epoch]:
    """Train `model` in place and return its curve.

    Parameters
    ----------
    model : nn.Module
        Everything that learns.
    epoch_steps : callable
        One epoch: yields steps, and each step yields parts (loss, accuracy in [0, 1]), computed lazily with the weights
        of that moment; nothing is computed or drawn for a step of which no part is asked for. The parts of all
        processes add up to the step's loss and accuracy.
    training : Training
        Its number format, augmentation and parts are up to `epoch_steps`.
    generator : torch.Generator, optional
        Generator of `epoch_steps`, which draws first an epoch's steps, and then what each needs. A training
        with a checkpoint needs it.
    steps_per_epoch : int
        Steps that `epoch_steps` yields: for `training.watch`, and for a learning rate that falls in every step.

    Raises
    ------
    DivergedError
        The loss became NaN or infinite, or the weights did in the last step; names epoch and step.
    ValueError
        There is a checkpoint, but no generator whose state it could keep. The learning rate falls in every step, but
        there are no steps.
    """
    if training.checkpoint is not None and generator is None:
        raise ValueError(
            "fit: a training with a checkpoint needs a generator; pass the torch.Generator that draws its data"
        )
    schedule, stage, team, watch = training.schedule, training.stage, training.compute.team, training.watch
    optimizer = schedule.optimizer_of(model)
    scheduler = schedule.scheduler_of(optimizer, steps_per_epoch)
    generator = generator or torch.Generator()
    progress = Progress(
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        generator=generator,
        team=team,
        checkpoint=training.checkpoint,
    )
    # waiting for each loss would leave a GPU, or the other processes, without work
    patience = 1 if next(model.parameters()).device.type == "cpu" and team.size == 1 else PATIENCE
    with seeded(_dropout_seed(training.seed, team.rank)):
        model.train()
        position = progress.resume()
        curve = [Epoch(**row) for row in position.curve]
        watch.begin(schedule.epochs * steps_per_epoch, len(curve) * steps_per_epoch + position.steps)
        while len(curve) < schedule.epochs:
            learning_rate = scheduler.rate(len(curve))
            tally = Tally(
                team,
                where=f"{stage}: epoch {len(curve) + 1}",
                advice=training.advice,
                steps=position.steps,
                sums=position.sums,
                untrained=not curve,
            )
            progress.begin_epoch()
            steps = iter(epoch_steps())
            if position.generator is not None:
                _skip(steps, position.steps)
                generator.set_state(position.generator)
            try:
                for step in steps:
                    optimizer.zero_grad(set_to_none=True)
                    for loss, accuracy in step:
                        (loss * team.size).backward()
                        tally.add(loss, accuracy)
                    tally.close_step()
                    if tally.waiting >= patience:
                        tally.settle()
                    optimizer.step()
                    scheduler.after_step()
                    watch.advance()
                    if not tally.waiting:
                        progress.keep(position.curve, tally.steps, tally.sums)
                if tally.waiting:
                    tally.settle()
                    progress.keep(position.curve, tally.steps, tally.sums)
            except MelaError:
                # an earlier loss that nobody has looked at may be the cause
                tally.settle(ALONE)
                raise
            scheduler.after_epoch()
            loss_mean, accuracy_mean = tally.mean()
            curve.append(
                Epoch(epoch=len(curve) + 1, loss=loss_mean, accuracy=100 * accuracy_mean, learning_rate=learning_rate)
            )
            position = Position(curve=[*map(asdict, curve)])
            if team.leads:
                training.on_epoch(curve[-1])
    model.eval()
    _require_finite(model, training)
    return curve


def _require_finite(model: nn.Module, training: Training) -> None:
    """Raise DivergedError unless all weights are finite; no loss was checked after the last step."""
    for name, value in model.state_dict().items():
        if value.is_floating_point() and not value.isfinite().all():
            raise DivergedError(
                f"{training.stage}: expected finite weights after the last step, got NaN or infinity in {name}; "
                f"{training.advice}"
            )


def _skip(steps: Iterator[Iterable[Part]], count: int) -> None:
    """Skip steps that are done, without computing their parts."""
    for _ in range(count):
        next(steps)


def _dropout_seed(seed: int, rank: int) -> int:
    """Return a seed of its own for each process; on a CPU only the lower half of its bits count."""
    return seed if rank == 0 else int(np.random.SeedSequence([seed, rank]).generate_state(1)[0])


def log_epoch(stage: str, epochs: int) -> Callable[[Epoch], None]:
    """Return a function that logs a line for every finished epoch."""

    def show(epoch: Epoch) -> None:
        log.info(
            f"{stage}: epoch {epoch.epoch}/{epochs}: loss {epoch.loss:.4f}, training accuracy {epoch.accuracy:.1f}%, "
            f"learning rate {epoch.learning_rate:g}"
        )

    return show


def require_share(key: str, fewest: int, parts: int, team: Team, *, things: str) -> None:
    """Raise MelaError unless every part of every step has at least one thing for each process.

    Parameters
    ----------
    key : str
        Named in the error.
    fewest : int
        Things of the smallest step.
    parts : int
        Parts of a step.
    team : Team
    things : str
        What they are.
    """
    needed = parts * team.size
    if fewest < needed:
        raise MelaError(
            f"{key}: the smallest step has {fewest} {things}, but {needed} are needed (processes: {team.size}, parts "
            f"of a step: {parts}); raise it, or lower runtime.processes or {key.split('.')[0]}.accumulate"
        )


def shuffled_batches(count: int, batch_size: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """Shuffle positions 0 to count - 1 into ceil(count / batch_size) batches whose sizes differ by one at most.

    Nothing is dropped and no batch is left with a single image, which BatchNorm could not take: an odd count in batches
    of two has one of three.
    """
    return torch.tensor_split(torch.randperm(count, generator=generator), batch_count(count, batch_size))


def batch_count(count: int, batch_size: int) -> int:
    """Return how many batches `shuffled_batches` makes."""
    return max(1, min(-(-count // batch_size), count // 2))
