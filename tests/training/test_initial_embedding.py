"""Meta-learning the initial embedding on tiny tasks."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from mela.data.augmentation import NONE, Augmentation, Changes
from mela.data.episodes import Episode, Episodes
from mela.errors import DivergedError, MelaError
from mela.models.backbones import Backbone
from mela.runtime.compute import Compute
from mela.runtime.team import Team
from mela.training.embeddings import train_embedding
from mela.training.loop import Epoch, Training
from tests.helpers.embedding import IMAGES, backbone, episodes, schedule, shown

SOME = Augmentation(crop_padding=1, flip=True, jitter=0.2)


def train(model: Backbone, tasks: Episodes, **changes: Any) -> list[Epoch]:
    options = {"ridge": 0.1, "normalize": False, "tasks_per_epoch": None, "tasks_per_step": 1}
    options |= {name: changes.pop(name) for name in options.keys() & changes}
    training = replace(Training(stage="embed", schedule=schedule(2), seed=0, augmentation=SOME), **changes)
    return train_embedding(model, IMAGES, tasks, training, **options)


def test_loss_falls() -> None:
    model = backbone()
    curve = train(model, episodes([([3] * 3, 5)] * 12), augmentation=NONE, schedule=schedule(6))
    assert [epoch.epoch for epoch in curve] == [1, 2, 3, 4, 5, 6]
    assert curve[-1].loss < 0.5 * curve[0].loss
    assert curve[-1].accuracy > curve[0].accuracy
    assert not model.training


def ridge_by_hand(features: Tensor, task: Episode) -> tuple[Tensor, float]:
    """Loss and accuracy of one task, whose images have these features (n, m); lambda is 0.1 n."""
    support = torch.tensor(task.is_support)
    design = torch.cat([features, features.new_ones(len(features), 1)], dim=1)
    labels = torch.tensor(task.labels)
    targets = torch.nn.functional.one_hot(labels).to(features.dtype)
    z, y = design[support], targets[support]
    outputs = design[~support] @ z.T @ torch.linalg.solve(z @ z.T + 0.1 * len(z) * torch.eye(len(z)), y)
    return ((outputs - targets[~support]) ** 2).mean(), (outputs.argmax(1) == labels[~support]).float().mean().item()


@pytest.mark.parametrize("together", [True, False], ids=["in one batch", "one part a task"])
def test_a_step_is_the_mean_ridge_loss_of_its_tasks(together: bool) -> None:
    """Of different shapes; in one batch they share the statistics of BatchNorm, in parts each task has its own."""
    tasks = episodes([([2, 3], 4), ([1, 1, 1], 2), ([2, 3], 4)])
    model, plain = backbone(), backbone().train()
    how = {"augmentation": NONE, "schedule": schedule(1, 0.05), "accumulate": 1 if together else 3}
    curve = train(model, tasks, normalize=True, tasks_per_step=3, **how)

    if together:
        features = list(plain(torch.cat([shown(task) for task in tasks])).split([len(t.labels) for t in tasks]))
    else:
        features = [plain(shown(task)) for task in tasks]
    losses, accuracies = zip(*map(ridge_by_hand, features, tasks), strict=True)
    loss = torch.stack(losses).mean()
    loss.backward()
    assert curve[0].loss == pytest.approx(loss.item(), rel=1e-5)
    assert curve[0].accuracy == pytest.approx(100 * sum(accuracies) / 3)
    for updated, initial in zip(model.parameters(), plain.parameters(), strict=True):
        assert initial.grad is not None
        expected = initial.detach() - 0.05 * (initial.grad + 5e-4 * initial.detach())
        torch.testing.assert_close(updated.detach(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("tasks_per_step", "steps"), [(1, [1] * 7), (3, [3, 2, 2]), (4, [4, 3]), (9, [7])])
def test_steps_of_several_tasks(tasks_per_step: int, steps: list[int]) -> None:
    recorder, tasks = Recorder(), episodes([([2, 2], 3)] * 7)
    train(backbone(), tasks, augmentation=recorder, tasks_per_step=tasks_per_step, schedule=schedule(1, 1e-4))
    assert recorder.sizes == [10 * n for n in steps]


@pytest.mark.parametrize(("size", "accumulate", "needed"), [(1, 3, 3), (2, 1, 2), (2, 2, 4)])
def test_a_step_has_a_task_for_every_part_and_process(size: int, accumulate: int, needed: int) -> None:
    tasks, compute = episodes([([1, 1], 1)] * 7), Compute(team=Team(rank=0, size=size))
    few = needed - 1
    smallest = 7 // -(-7 // few)
    message = rf"^embed.tasks_per_step: .* {smallest} tasks, but {needed} are needed .*; raise it"
    with pytest.raises(MelaError, match=message):
        train(backbone(), tasks, tasks_per_step=few, accumulate=accumulate, compute=compute)


@pytest.mark.parametrize("name", ["conv4", "resnet12"])
def test_the_seed_alone_decides(name: str) -> None:
    tasks = episodes([([2] * 3, 3)] * 4)
    models = []
    for number, seed in enumerate([3, 3, 4]):
        torch.manual_seed(number)
        state = torch.get_rng_state()
        models.append(backbone(name))
        train(models[-1], tasks, seed=seed, tasks_per_epoch=3)
        assert torch.equal(torch.get_rng_state(), state)
    first, again, other = (model.state_dict() for model in models)
    assert all(torch.equal(value, again[key]) for key, value in first.items())
    assert not all(torch.equal(value, other[key]) for key, value in first.items())


def test_ways_and_shots_may_differ() -> None:
    tasks = episodes([([1, 1], 2), ([5, 1, 2], 4), ([2] * 6, 1), ([3, 4], 3)] * 3)
    curve = train(backbone(), tasks, augmentation=NONE, schedule=schedule(6))
    assert np.isfinite([epoch.loss for epoch in curve]).all()
    assert curve[-1].loss < curve[0].loss


class Recorder(Augmentation):
    """Changes nothing and remembers the batch sizes."""

    def __init__(self) -> None:
        super().__init__(crop_padding=0, flip=False, jitter=0)
        object.__setattr__(self, "sizes", [])

    sizes: list[int]

    def draw(self, count: int, generator: torch.Generator) -> Changes:
        self.sizes.append(count)
        return super().draw(count, generator)


@pytest.mark.parametrize("tasks_per_epoch", [None, 2, 5])
def test_an_epoch_draws_tasks_without_repetition(tasks_per_epoch: int | None) -> None:
    tasks = episodes([([1 + extra, 1], 2) for extra in range(5)])
    recorder = Recorder()
    train(backbone(), tasks, augmentation=recorder, tasks_per_epoch=tasks_per_epoch, schedule=schedule(8, 1e-4))
    steps = tasks_per_epoch or 5
    assert len(recorder.sizes) == 8 * steps
    drawn = [recorder.sizes[start : start + steps] for start in range(0, 8 * steps, steps)]
    assert all(len(set(epoch)) == steps for epoch in drawn)
    assert {size for epoch in drawn for size in epoch} == {6, 7, 8, 9, 10}
    assert len({tuple(epoch) for epoch in drawn}) > 1


def test_more_tasks_per_epoch_than_tasks() -> None:
    with pytest.raises(MelaError, match=r"^embed.tasks_per_epoch: expected at most 3, .* got 4; lower it"):
        train(backbone(), episodes([([1, 1], 1)] * 3), tasks_per_epoch=4)


def test_no_tasks() -> None:
    with pytest.raises(MelaError, match=r"^train manifest: it has no task"):
        train(backbone(), episodes([]))


def test_divergence_names_the_task_among_those_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Task 30 of a second shape is the only one with an image that is not a number."""
    rows = [(10 * k, 5 * k + i, i % 2, "support" if i < 2 + (k > 1) else "query") for k in range(4) for i in range(5)]
    tasks = Episodes(pd.DataFrame(rows, columns=["task_id", "image_id", "local_label", "role"]))

    def spoiled(batch: Tensor) -> Tensor:
        spoilt = torch.from_numpy(np.isin(batch[:, 0, 0, 0].numpy(), IMAGES[15:20, 0, 0, 0] / np.float32(255)))
        return torch.where(spoilt[:, None], torch.nan, batch.flatten(1)[:, :8]).requires_grad_()

    monkeypatch.setattr(Compute, "forward_of", lambda self, network: spoiled)
    monkeypatch.setitem(globals(), "IMAGES", np.arange(20, dtype=np.uint8).repeat(256).reshape(20, 16, 16, 1))
    told = r"on 3 samples .*largest feature nan.*; lower embed.learning_rate \(now 0\.05\), or raise embed\.ridge$"
    with pytest.raises(DivergedError, match=rf"^embed: task 30: ridge regression {told}"):
        train(backbone(), tasks, augmentation=NONE, tasks_per_step=4)
