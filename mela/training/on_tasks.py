"""Meta-learn from tasks: the loop of the initial embedding and of all methods on local labels (Eq. 4)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.data.array_types import Ints
from mela.data.episodes import Episodes, FlatTasks, TaskGroup
from mela.data.images import ImageLoader, require_images
from mela.data.quarter_turns import TURNS, quarter_turned
from mela.errors import DivergedError, MelaError, UnsolvableError
from mela.learners.base import Learner, checked_losses
from mela.learners.contract import require_each
from mela.training.loop import Epoch, Part, Training, fit, require_share


def train_on_tasks(
    learner: Learner,
    images: npt.NDArray[np.uint8],
    tasks: Episodes,
    training: Training,
    *,
    tasks_per_epoch: int | None,
    tasks_per_step: int = 1,
) -> list[Epoch]:
    """Train `learner` in place and return its curve.

    Support and query images of all tasks of a step go through the embedding as one batch; the mean of the tasks' losses
    is the loss of the step.

    Parameters
    ----------
    learner : Learner
    images : uint8 (N, h, w, c)
    tasks : Episodes
        Tasks with support and query images; ways and shots may differ.
    training : Training
    tasks_per_epoch : int or None
        Tasks of an epoch, drawn for each without repetition; None takes all.
    tasks_per_step : int
        Tasks of a step, at most; the numbers of an epoch's steps differ by one task at most.

    Raises
    ------
    MelaError
        There are no tasks, or fewer than an epoch needs, or their images are missing; the method's results for a task
        have a wrong shape.
    DivergedError
        The loss or the weights are not finite, or the head has no solution for a task, which it names.
    """
    stage, compute, accumulate = training.stage, training.compute, training.accumulate
    if not len(tasks):
        raise MelaError("train manifest: it has no task; add training tasks and rerun the stage manifest")
    if tasks_per_epoch is not None and tasks_per_epoch > len(tasks):
        raise MelaError(
            f"{stage}.tasks_per_epoch: expected at most {len(tasks)}, the number of training tasks, got "
            f"{tasks_per_epoch}; lower it, or null takes all"
        )
    require_images(images, tasks.image_ids())
    n_tasks = tasks_per_epoch or len(tasks)
    n_steps = -(-n_tasks // tasks_per_step)
    require_share(f"{stage}.tasks_per_step", n_tasks // n_steps, accumulate, compute.team, things="tasks")
    generator = torch.Generator().manual_seed(training.seed)
    device = next(learner.parameters()).device
    load = ImageLoader(images, device)
    shapes = _Shapes.of(tasks)
    forward = compute.forward_of(learner)

    def parts(chosen: Tensor) -> Iterator[Part]:
        for part in chosen.tensor_split(accumulate):
            ordered = shapes.sort(part.numpy())
            own = compute.team.share(len(ordered))
            bounds = np.concatenate([[0], np.cumsum(shapes.n_images[ordered])])
            shown = slice(bounds[own.start], bounds[own.stop])
            changes = training.augmentation.draw(int(bounds[-1]), generator)[shown]
            whole = load(np.concatenate([group.images.ravel() for group in shapes.groups(ordered)]))
            batch, groups = changes(whole[shown], whole), list(shapes.groups(ordered[own]))
            if training.rotated_classes:
                drawn = torch.randint(TURNS, (len(ordered), shapes.most_ways), generator=generator)
                batch = quarter_turned(batch, _turns(drawn[own], groups))
            losses, accuracies = _losses(require_each(learner, forward(batch), len(batch)), groups)
            yield losses.sum() / len(chosen), accuracies.sum() / len(chosen)

    def _turns(of_classes: Tensor, groups: list[TaskGroup]) -> Tensor:
        """Return the turns of images (b,), in their order, by those of the classes of each task."""
        of_groups = zip(of_classes.split([len(group) for group in groups]), groups, strict=True)
        return torch.cat([turns.gather(1, torch.from_numpy(group.labels)).ravel() for turns, group in of_groups])

    def _losses(features: Tensor, groups: list[TaskGroup]) -> tuple[Tensor, Tensor]:
        found, start = [], 0
        for group in groups:
            labels = group.labels
            own = features[start : start + labels.size].unflatten(0, labels.shape)
            start += labels.size
            try:
                targets = torch.from_numpy(labels).to(device)
                found.append(checked_losses(learner, own, targets, group.support.shape[1], group.ways))
            except UnsolvableError as error:
                task = tasks.task_ids[group.positions[error.problem]]
                also = f", or {learner.remedy}" if learner.remedy else ""
                raise DivergedError(f"{stage}: task {task}: {error}; {training.advice}{also}") from None
        losses, accuracies = zip(*found, strict=True)
        return torch.cat(losses), torch.cat(accuracies)

    def epoch_steps() -> Iterator[Iterator[Part]]:
        chosen = torch.randperm(len(tasks), generator=generator)[:n_tasks]
        return map(parts, chosen.tensor_split(n_steps))

    return fit(learner, epoch_steps, training, generator=generator, steps_per_epoch=n_steps)


@dataclass(frozen=True, kw_only=True)
class _Shapes:
    """Hold tasks sorted by their shape.

    Attributes
    ----------
    all : list of TaskGroup
        Every task, with those of its shape.
    group, row : int64 (n_tasks,)
        Position of each task among them.
    n_images : int64 (n_tasks,)
    """

    all: list[TaskGroup]
    group: Ints
    row: Ints
    n_images: Ints

    @classmethod
    def of(cls, tasks: Episodes) -> "_Shapes":
        groups = FlatTasks.of(tasks).groups()
        group, row, n_images = np.zeros((3, len(tasks)), dtype=np.int64)
        for number, of_a_shape in enumerate(groups):
            group[of_a_shape.positions] = number
            row[of_a_shape.positions] = np.arange(len(of_a_shape))
            n_images[of_a_shape.positions] = of_a_shape.support.shape[1] + of_a_shape.query.shape[1]
        return cls(all=groups, group=group, row=row, n_images=n_images)

    @property
    def most_ways(self) -> int:
        """Number of classes of the task that has most."""
        return max(group.ways for group in self.all)

    def sort(self, positions: Ints) -> Ints:
        """Sort positions such that tasks of one shape are adjacent."""
        return positions[np.argsort(self.group[positions], kind="stable")]

    def groups(self, positions: Ints) -> Iterator[TaskGroup]:
        """Yield the tasks at sorted positions."""
        for number in np.unique(self.group[positions]):
            yield self.all[number][self.row[positions[self.group[positions] == number]]]
