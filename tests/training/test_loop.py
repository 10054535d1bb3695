"""The training loop against plain torch."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from mela.errors import DivergedError, MelaError
from mela.training.checkpoint import Checkpoint
from mela.training.loop import Epoch, Training, batch_count, fit, log_epoch, shuffled_batches
from mela.training.schedule import Schedule

SCHEDULE: dict[str, Any] = {
    "epochs": 7,
    "learning_rate": 0.2,
    "momentum": 0.9,
    "weight_decay": 0.01,
    "milestones": [2, 5],
    "decay": 0.1,
}
X = torch.randn(12, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(12) % 3


def network(dropout: float = 0.0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 3))


Part = tuple[Tensor, Tensor]


def losses_of(model: nn.Module) -> Iterator[Part]:
    for rows in torch.arange(12).split(4):
        logits = model(X[rows])
        yield F.cross_entropy(logits, Y[rows]), (logits.argmax(1) == Y[rows]).float().mean()


def epoch_of(model: nn.Module) -> Callable[[], Iterator[list[Part]]]:
    return lambda: ([part] for part in losses_of(model))


def training(stage: str = "embed", seed: int = 0, **changes: Any) -> Training:
    return Training(stage=stage, schedule=Schedule(**SCHEDULE | changes), seed=seed)


def train(model: nn.Module, seed: int = 0, **changes: Any) -> list[Epoch]:
    return fit(model, epoch_of(model), training(seed=seed, **changes))


def test_equals_a_plain_loop() -> None:
    model, plain = network(), network()
    optimizer = torch.optim.SGD(plain.parameters(), lr=0.2, momentum=0.9, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 5], gamma=0.1)
    expected = []
    for _ in range(7):
        losses, accuracies = [], []
        for loss, accuracy in losses_of(plain):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            accuracies.append(accuracy.item())
        scheduler.step()
        expected.append((sum(losses) / 3, 100 * sum(accuracies) / 3))

    curve = train(model)

    assert [epoch.epoch for epoch in curve] == [1, 2, 3, 4, 5, 6, 7]
    assert [(epoch.loss, epoch.accuracy) for epoch in curve] == [pytest.approx(pair, rel=1e-12) for pair in expected]
    torch.testing.assert_close(model.state_dict(), plain.state_dict(), rtol=0, atol=0)


def test_the_rate_decays_after_each_milestone() -> None:
    rates = [epoch.learning_rate for epoch in train(network())]
    assert rates == pytest.approx([0.2, 0.2, 0.02, 0.02, 0.02, 0.002, 0.002])


def test_reported_rate_is_the_one_that_moves_the_weights() -> None:
    model = nn.Linear(1, 1, bias=False)
    weights = [model.weight.item()]

    def losses() -> Iterator[list[Part]]:
        yield [(model.weight.sum(), torch.tensor(0.0))]

    how = training(epochs=4, learning_rate=0.5, momentum=0, weight_decay=0, milestones=[1, 3], decay=0.5)
    curve = fit(model, losses, replace(how, on_epoch=lambda _: weights.append(model.weight.item())))
    moves = [before - after for before, after in pairwise(weights)]
    assert moves == pytest.approx([epoch.learning_rate for epoch in curve], rel=1e-5)
    assert moves == pytest.approx([0.5, 0.25, 0.25, 0.125], rel=1e-5)


def test_parts_of_a_step_add_up() -> None:
    def parts_of(model: nn.Module) -> Iterator[Iterator[Part]]:
        def parts(rows: Tensor) -> Iterator[Part]:
            for row in rows.split(3):
                logits = model(X[row])
                loss = F.cross_entropy(logits, Y[row], reduction="sum") / len(rows)
                yield loss, (logits.argmax(1) == Y[row]).sum() / len(rows)

        return map(parts, torch.arange(12).split(4))

    def plain() -> nn.Module:
        model = network()
        return nn.Sequential(*(layer for layer in model if not isinstance(layer, nn.BatchNorm1d)))  # type: ignore[arg-type]

    whole, divided = plain(), plain()
    curve = train(whole)
    parts = fit(divided, lambda: parts_of(divided), training())
    for one, other in zip(curve, parts, strict=True):
        assert (other.loss, other.accuracy) == pytest.approx((one.loss, one.accuracy), rel=1e-5)
    torch.testing.assert_close(divided.state_dict(), whole.state_dict(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_infinite_loss_is_an_error_and_moves_nothing(value: float) -> None:
    model = network()
    steps = 0
    before: dict[str, Tensor] = {}

    def losses() -> Iterator[list[Part]]:
        nonlocal steps
        for loss, accuracy in losses_of(model):
            steps += 1
            if steps == 5:
                before.update({name: parameter.detach().clone() for name, parameter in model.named_parameters()})
            yield [(loss * (value if steps == 5 else 1), accuracy)]

    torch.manual_seed(3)
    state = torch.get_rng_state()
    advice = r"lower pretrain.learning_rate \(now 0.2\)"
    message = f"^pretrain: epoch 2, step 2: expected a finite loss, got {value}; {advice}$"
    with pytest.raises(MelaError, match=message):
        fit(model, losses, training("pretrain"))
    torch.testing.assert_close(dict(model.named_parameters()), before, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), state)


def test_trains_in_training_mode_and_ends_in_evaluation_mode() -> None:
    model = network().eval()
    modes = []

    def losses() -> Iterator[list[Part]]:
        modes.append(all(module.training for module in model.modules()))
        yield from epoch_of(model)()

    fit(model, losses, training())
    assert modes == [True] * 7
    assert not any(module.training for module in model.modules())


def test_the_seed_alone_decides_dropout() -> None:
    models = [network(0.5) for _ in range(3)]
    curves = []
    for model, seed in zip(models, [4, 4, 5], strict=True):
        torch.manual_seed(len(curves))
        state = torch.get_rng_state()
        curves.append(train(model, seed))
        assert torch.equal(torch.get_rng_state(), state)
    assert curves[0] == curves[1]
    assert curves[0] != curves[2]


def test_epochs_are_announced(capsys: pytest.CaptureFixture[str]) -> None:
    model = network()
    told: list[Epoch] = []
    show = log_epoch("embed", 7)
    how = replace(training(), on_epoch=lambda epoch: (told.append(epoch), show(epoch))[1])
    curve = fit(model, epoch_of(model), how)
    assert told == curve
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert lines[2] == (
        f"embed: epoch 3/7: loss {curve[2].loss:.4f}, training accuracy {curve[2].accuracy:.1f}%, learning rate 0.02"
    )


@hypothesis_settings(deadline=None, max_examples=300)
@given(count=st.integers(1, 300), batch_size=st.integers(2, 70), seed=st.integers(0, 2**32 - 1))
def test_batches_take_every_position_once(count: int, batch_size: int, seed: int) -> None:
    batches = list(shuffled_batches(count, batch_size, torch.Generator().manual_seed(seed)))
    sizes = [len(batch) for batch in batches]
    assert len(sizes) == batch_count(count, batch_size)
    assert sorted(torch.cat(batches).tolist()) == list(range(count))
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) <= max(batch_size, 3)
    assert min(sizes) > 1 or count == 1
    if batch_size > 2:
        assert len(batches) == math.ceil(count / batch_size)


def test_batches_are_shuffled_by_the_generator() -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.cat(list(shuffled_batches(100, 32, generator))) for _ in range(2))
    again = torch.cat(list(shuffled_batches(100, 32, torch.Generator().manual_seed(0))))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert not torch.equal(first, torch.arange(100))


def test_a_last_step_that_leads_nowhere_is_refused() -> None:
    """Every loss was finite, and no other follows."""
    model = nn.Linear(1, 1, bias=False)
    step = [[(1000 * model.weight.sum(), torch.tensor(0.0))]]
    schedule = Schedule(**SCHEDULE | {"epochs": 1, "learning_rate": 1e36, "milestones": []})
    message = r"^embed: expected finite weights after the last step, got NaN or infinity in weight; lower"
    with pytest.raises(DivergedError, match=message):
        fit(model, lambda: step, Training(stage="embed", schedule=schedule, seed=0))


def test_a_checkpoint_needs_the_generator(tmp_path: Path) -> None:
    model, kept = network(), Checkpoint(path=tmp_path / "state", fingerprint="a", interval=0)
    with pytest.raises(ValueError, match="a training with a checkpoint needs a generator"):
        fit(model, epoch_of(model), replace(training(), checkpoint=kept))


class Embedded(nn.Module):
    """A network with what training calls an embedding, and something new on top or not."""

    def __init__(self, *, new: bool = True) -> None:
        super().__init__()
        self.backbone = nn.Linear(4, 3, bias=False)
        self.new = nn.Linear(3, 3, bias=False) if new else nn.Identity()

    def forward(self, inputs: Tensor) -> Any:
        return self.new(self.backbone(inputs))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("new", [True, False])
def test_an_embedding_learns_at_a_share_of_the_rate(optimizer: str, *, new: bool) -> None:
    """The first step of Adam is the learning rate itself, that of SGD the rate times the gradient."""
    model = Embedded(new=new)
    before = {name: value.clone() for name, value in model.named_parameters()}
    F.cross_entropy(model(X), Y).backward()
    gradients = {name: value.grad.clone() for name, value in model.named_parameters() if value.grad is not None}
    model.zero_grad()
    changes = {"epochs": 1, "milestones": [1], "weight_decay": 0.0, "optimizer": optimizer, "embedding_rate": 0.1}
    curve = fit(
        model, lambda: iter([[(F.cross_entropy(model(X), Y), torch.tensor(0.5))]]), training("tuning", **changes)
    )
    rates = {"backbone.weight": 0.02, "new.weight": 0.2}
    for name, value in model.named_parameters():
        step = gradients[name] if optimizer == "sgd" else gradients[name].sign()
        torch.testing.assert_close(value, before[name] - rates[name] * step, atol=1e-4, rtol=1e-3)
    assert curve[0].learning_rate == (0.2 if new else pytest.approx(0.02))
