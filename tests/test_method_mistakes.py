"""What somebody who writes a method of their own may get wrong, and is told of before anything is trained."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from test_embedding import IMAGES, backbone, episodes, schedule
from test_methods import WAYS, features
from torch import Tensor, nn

from mela import method
from mela.errors import DivergedError, MelaError
from mela.image_learner import ImageLearner
from mela.label_learner import LabelLearner
from mela.learner import Learner
from mela.meta_test import own_rule
from mela.meta_training import train_on_tasks
from mela.method import Method, find_method
from mela.methods.frn import FRN
from mela.methods.protonet import ProtoNet
from mela.training import Epoch, Schedule, Training

TASKS = episodes([([2, 2, 2], 4)] * 8)
STEPS = schedule(1, 0.02)


class ToSupport(Learner):
    """Logits (t, q, n): every support image in place of every class."""

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        return -torch.cdist(query, support)


class Turned(ProtoNet):
    """Logits (t, ways, q)."""

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        return super().logits(support, labels, query, ways).mT


class Forgotten(Learner):
    """Nothing is returned."""

    def logits(self, *_: Any) -> Any:
        return None


class TurnedFRN(FRN):
    """With losses of its own."""

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        return super().logits(support, labels, query, ways).mT


class MeanLoss(ProtoNet):
    """One loss for all tasks."""

    def losses(self, *arguments: Any) -> tuple[Tensor, Tensor]:
        losses, accuracies = super().losses(*arguments)
        return losses.mean(), accuracies


class LossAlone(ProtoNet):
    """No accuracies."""

    def losses(self, *arguments: Any) -> Any:
        return super().losses(*arguments)[0]


class Strange(ProtoNet):
    """Logits that are no numbers."""

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        return super().logits(support, labels, query, ways) * torch.nan


def train(learner: Learner, steps: Schedule = STEPS) -> list[Epoch]:
    how = Training(stage="methods", schedule=steps, seed=0)
    return train_on_tasks(learner, IMAGES, TASKS, how, tasks_per_epoch=None, tasks_per_step=2)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ToSupport, r"^ToSupport.logits: expected a tensor \(tasks, queries, ways\) of \(2, 12, 3\), got a tensor of "
         r"\(2, 12, 6\); correct the method$"),
        (Turned, r"^Turned.logits: expected .* of \(2, 12, 3\), got a tensor of \(2, 3, 12\); correct the method$"),
        (TurnedFRN, r"^TurnedFRN.logits: expected .* of \(2, 12, 3\), got a tensor of \(2, 3, 12\); correct"),
        (Forgotten, r"^Forgotten.logits: expected .* of \(2, 12, 3\), got NoneType; correct the method$"),
        (MeanLoss, r"^MeanLoss.losses: expected losses and accuracies, one of each for 2 tasks, got a tensor of \(\), "
         r"a tensor of \(2,\); correct the method$"),
        (LossAlone, r"^LossAlone.losses: expected .* for 2 tasks, got a tensor of \(2,\); correct the method$"),
    ],
)  # fmt: skip
def test_shapes_are_checked_before_the_first_step(kind: type[Learner], message: str) -> None:
    learner = kind(backbone())
    before = {name: value.clone() for name, value in learner.named_parameters()}
    with pytest.raises(MelaError, match=message):
        train(learner)
    for name, value in learner.named_parameters():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("kind", [ToSupport, Turned, Forgotten])
def test_no_accuracy_comes_of_logits_of_another_shape(kind: type[Learner]) -> None:
    with pytest.raises(MelaError, match=rf"^{kind.__name__}.logits: expected a tensor .* of \(8, 12, 3\), got"):
        own_rule(kind(backbone()).eval(), IMAGES, TASKS, [2])


def test_logits_of_the_right_shape_stay_as_they_are() -> None:
    support, labels, query, _ = features()
    learner = ProtoNet(backbone())
    assert torch.equal(
        learner.checked_logits(support, labels, query, WAYS), learner.logits(support, labels, query, WAYS)
    )


def test_no_learning_rate_is_blamed_before_anything_is_learned() -> None:
    with pytest.raises(
        DivergedError, match=r"epoch 1, step 1: expected a finite loss, got nan; nothing has been learned yet, so corr"
    ):
        train(Strange(backbone()))
    with pytest.raises(DivergedError, match=r"epoch 1, step \d: expected a finite loss, got \w+; lower methods.learni"):
        train(ProtoNet(backbone()), schedule(1, 1e30))


def test_optimizers_that_do_not_exist() -> None:
    """Any other name would train as if it were SGD."""
    steps = Schedule(epochs=1, learning_rate=0.1, momentum=0.9, weight_decay=0, milestones=[], decay=1)
    assert isinstance(steps.optimizer_of(nn.Linear(1, 1)), torch.optim.SGD)
    for name in ("adamw", "SGD"):
        wrong = Schedule(
            epochs=1, learning_rate=0.1, momentum=0, weight_decay=0, milestones=[], decay=1, optimizer=name
        )  # type: ignore[arg-type]
        with pytest.raises(
            MelaError, match=rf"^optimizer of ProtoNet: expected sgd or adam \(which is AdamW\), got '{name}'; corr"
        ):
            train(ProtoNet(backbone()), wrong)


@pytest.mark.parametrize(
    ("sees", "learner", "message"),
    [
        ("task", ProtoNet, "sees: expected one of tasks, labels, images, got 'task'; correct it"),
        ("labels", ProtoNet, "learner: expected a class derived from LabelLearner, since it sees labels, got ProtoNet"),
        (
            "tasks",
            LabelLearner,
            "learner: expected a class derived from Learner, since it sees tasks, got LabelLearner",
        ),
        (
            "images",
            LabelLearner,
            "learner: expected a class derived from ImageLearner, since .*, got LabelLearner; corr",
        ),
        (
            "tasks",
            ImageLearner,
            "learner: expected a class derived from Learner, since it sees tasks, got ImageLearner",
        ),
        (
            "tasks",
            lambda backbone: ProtoNet(backbone),
            "learner: expected a class derived from Learner, .*, got <lambd",
        ),
        (
            "tasks",
            None,
            "learner: expected a class derived from Learner, since it sees tasks, got None; correct either",
        ),
    ],
)
def test_what_a_method_says_of_itself(sees: Any, learner: Any, message: str) -> None:
    with pytest.raises(MelaError, match=f"^method 'mine': {message}"):
        Method(title="mine", source="Me, 2026", sees=sees, learner=learner)


def test_a_file_without_a_method(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").touch()
    monkeypatch.setattr(method.mela.methods, "__path__", [*method.mela.methods.__path__, str(tmp_path)])
    with pytest.raises(MelaError, match=r"^mela/methods/mine.py: expected METHOD = Method\(...\), got None; add it$"):
        find_method("mine")
    other = ModuleType("mela.methods.mine")
    other.METHOD = Method(title="mine", source="Me, 2026", sees="tasks", learner=ProtoNet)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mela.methods.mine", other)
    assert find_method("mine").title == "mine"
