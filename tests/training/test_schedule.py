"""Schedules against plain torch."""

import math
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.models.backbones import Backbone
from mela.training.loop import Part, Training, fit
from mela.training.schedule import Schedule

PLAIN: dict[str, Any] = {"epochs": 5, "learning_rate": 0.2, "momentum": 0.9, "weight_decay": 0.1, "milestones": []}
X, Y = torch.randn(12, 4, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 3


def schedule(**changes: Any) -> Schedule:
    return Schedule(**PLAIN | {"decay": 0.1} | changes)


def network() -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def batches(model: nn.Module) -> Iterator[Tensor]:
    for rows in torch.arange(12).split(4):
        yield F.cross_entropy(model(X[rows]), Y[rows])


@pytest.mark.parametrize("scheduler", ["linear", "cosine"])
@pytest.mark.parametrize("nesterov", [False, True])
def test_a_rate_that_falls_in_every_step_equals_a_plain_loop(
    scheduler: Literal["linear", "cosine"], *, nesterov: bool
) -> None:
    """Rates are those of the formulas; PyTorch's own schedulers, which multiply step by step, have the same."""
    model, plain = network(), network()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.2, momentum=0.9, weight_decay=0.1, nesterov=nesterov)
    if scheduler == "linear":
        falling: Any = torch.optim.lr_scheduler.PolynomialLR(optimizer, 15)
        expected = [0.2 * (1 - step / 15) for step in range(15)]
    else:
        falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15)
        expected = [0.1 * (1 + math.cos(math.pi * step / 15)) for step in range(15)]
    rates = []
    for _ in range(5):
        for loss in batches(plain):
            optimizer.zero_grad()
            loss.backward()
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            falling.step()

    def epoch() -> Iterator[list[Part]]:
        return ([(loss, torch.tensor(0.0))] for loss in batches(model))

    how = Training(stage="pretrain", schedule=schedule(scheduler=scheduler, nesterov=nesterov), seed=0)
    curve = fit(model, epoch, how, steps_per_epoch=3)

    assert rates == pytest.approx(expected, rel=1e-9)
    assert [epoch.learning_rate for epoch in curve] == pytest.approx(expected[::3], rel=1e-9)
    torch.testing.assert_close(model.state_dict(), plain.state_dict(), rtol=1e-5, atol=1e-6)


def test_the_rate_falls_to_nothing_after_the_last_step() -> None:
    optimizer = schedule().optimizer_of(network())
    scheduler = schedule(scheduler="linear").scheduler_of(optimizer, 3)
    for _ in range(15):
        assert optimizer.param_groups[0]["lr"] > 0
        optimizer.step()
        scheduler.after_step()
        scheduler.after_epoch()
    assert optimizer.param_groups[0]["lr"] == 0


def test_steps_have_to_be_known() -> None:
    with pytest.raises(ValueError, match="steps_per_epoch: expected 1 or more with the scheduler linear, got 0"):
        schedule(scheduler="linear").scheduler_of(torch.optim.SGD(network().parameters()), 0)


def test_no_epochs_need_no_rate() -> None:
    scheduler = schedule(scheduler="cosine", epochs=0).scheduler_of(torch.optim.SGD(network().parameters(), lr=0.2), 3)
    assert scheduler.rate(0) == 0.2


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("embedding_rate", [1.0, 0.1])
def test_biases_and_norms_decay_only_if_asked(optimizer: Literal["sgd", "adam"], embedding_rate: float) -> None:
    """Without a gradient a weight that decays shrinks by the rate times the decay, and others stay."""

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone = Backbone(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)), 2, [0.5], [0.5])
            self.classifier, self.scale = nn.Linear(2, 3), nn.Parameter(torch.tensor(4.0))

    for decay_norms in (True, False):
        model = Model()
        before = {name: value.detach().clone() for name, value in model.named_parameters()}
        sum(0 * value.sum() for value in model.parameters()).backward()
        changes = {"optimizer": optimizer, "embedding_rate": embedding_rate, "momentum": 0.0}
        schedule(**changes, decay_norms=decay_norms).optimizer_of(model).step()
        for name, value in model.named_parameters():
            rate = 0.2 * (embedding_rate if name.startswith("backbone") else 1)
            left = 1 - rate * 0.1 if decay_norms or value.ndim > 1 else 1
            torch.testing.assert_close(value.detach(), left * before[name])
        assert len(before) == 7
