"""What somebody who writes a method of their own may get wrong, and is told of before anything is trained."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import mela.methods
from mela.errors import DivergedError, MelaError
from mela.evaluation.rules import own_rule
from mela.learners.base import ImageLearner, LabelLearner, Learner
from mela.learners.method import Method
from mela.methods import find_method, method_names, methods_that_see
from mela.methods.frn import FRN
from mela.methods.protonet import ProtoNet
from mela.runtime.compute import Run
from mela.training.loop import Epoch, Training
from mela.training.on_images import train_on_labels, train_without_labels
from mela.training.on_tasks import train_on_tasks
from mela.training.schedule import Schedule
from mela.training.targets import Targets
from tests.helpers.embedding import IMAGES, WAYS, backbone, episodes, features, schedule

TASKS = episodes([([2, 2, 2], 4)] * 8)
STEPS = schedule(1, 0.02)


class ToSupport(Learner):
    """Logits (t, q, n): every support image in place of every class."""

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        return -torch.cdist(query, support)


def altered(name: str, base: type[Any], method: str, change: Callable[[Any], Any]) -> type[Any]:
    """A class of this name in which a method of its base returns something else."""
    return type(name, (base,), {method: lambda self, *arguments: change(getattr(base, method)(self, *arguments))})


# logits (t, ways, q), also where the losses are of the method's own
Turned = altered("Turned", ProtoNet, "logits", lambda logits: logits.mT)
TurnedFRN = altered("TurnedFRN", FRN, "logits", lambda logits: logits.mT)
Forgotten = altered("Forgotten", ProtoNet, "logits", lambda logits: None)
Strange = altered("Strange", ProtoNet, "logits", lambda logits: logits * torch.nan)
Detached = altered("Detached", ProtoNet, "logits", lambda logits: logits.detach())
MeanLoss = altered("MeanLoss", ProtoNet, "losses", lambda found: (found[0].mean(), found[1]))
LossAlone = altered("LossAlone", ProtoNet, "losses", lambda found: found[0])
Swapped = altered("Swapped", ProtoNet, "losses", lambda found: found[::-1])
OneFeature = altered("OneFeature", ProtoNet, "forward", lambda features: features[:1])


def train(learner: Learner, steps: Schedule = STEPS) -> list[Epoch]:
    how = Training(stage="methods", schedule=steps, seed=0)
    return train_on_tasks(learner, IMAGES, TASKS, how, tasks_per_epoch=None, tasks_per_step=2)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ToSupport, r"^ToSupport.logits: expected logits \(tasks, queries, ways\), a tensor of \(2, 12, 3\), got a "
         r"tensor of \(2, 12, 6\); correct the method$"),
        (Turned, r"^Turned.logits: expected .* of \(2, 12, 3\), got a tensor of \(2, 3, 12\); correct the method$"),
        (TurnedFRN, r"^TurnedFRN.logits: expected .* of \(2, 12, 3\), got a tensor of \(2, 3, 12\); correct"),
        (Forgotten, r"^Forgotten.logits: expected .* of \(2, 12, 3\), got NoneType; correct the method$"),
        (MeanLoss, r"^MeanLoss.losses: expected losses of the tasks, a tensor of \(2,\), got a tensor of \(\); corr"),
        (LossAlone, r"^LossAlone.losses: expected losses and accuracies of the tasks, got a tensor of \(2,\); corr"),
        (Detached, r"^Detached.losses: expected losses of the tasks, with a gradient, got a tensor of \(2,\) without"),
        (Swapped, r"^Swapped.losses: expected losses of the tasks, with a gradient, got a tensor of \(2,\) without; c"),
        (OneFeature, r"^OneFeature.forward: expected a tensor with a row for each of 36 images, got a tensor of \(1, "),
    ],
)  # fmt: skip
def test_shapes_are_checked_before_the_first_step(kind: type[Learner], message: str) -> None:
    learner = kind(backbone())
    before = {name: value.clone() for name, value in learner.named_parameters()}
    with pytest.raises(MelaError, match=message):
        train(learner)
    torch.testing.assert_close(dict(learner.named_parameters()), before, rtol=0, atol=0)


@pytest.mark.parametrize("kind", [ToSupport, Turned, Forgotten])
def test_no_accuracy_comes_of_logits_of_another_shape(kind: type[Learner]) -> None:
    with pytest.raises(MelaError, match=rf"^{kind.__name__}.logits: expected .* of \(8, 12, 3\), got"):
        own_rule(kind(backbone()).eval(), IMAGES, TASKS, [2])


def test_logits_of_the_right_shape_stay_as_they_are() -> None:
    support, labels, query, _ = features()
    learner = ProtoNet(backbone())
    assert torch.equal(
        learner.checked_logits(support, labels, query, WAYS), learner.logits(support, labels, query, WAYS)
    )


def test_no_accuracy_comes_of_logits_that_are_no_numbers() -> None:
    message = r"^task 0: expected finite logits, got NaN or infinity; train again, with a lower"
    with pytest.raises(DivergedError, match=message):
        own_rule(Strange(backbone()).eval(), IMAGES, TASKS, [2])


class LabelMean(LabelLearner):
    """The mean over images, not their sum, as good as any."""

    def loss(self, run: Run, images: Tensor, targets: Tensor, generator: torch.Generator) -> Any:
        loss, logits = super().loss(run, images, targets, generator)
        return loss / len(images), logits


LossOfEach = altered("LossOfEach", LabelMean, "loss", lambda found: (found[0].expand(len(found[1])), found[1]))
TurnedLogits = altered("TurnedLogits", LabelMean, "loss", lambda found: (found[0], found[1].T))
LabelLossAlone = altered("LabelLossAlone", LabelMean, "loss", lambda found: found[0])
DetachedLabels = altered("DetachedLabels", LabelMean, "loss", lambda found: (found[0].detach(), found[1]))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (LossOfEach, r"^LossOfEach.loss: expected the sum of the images' losses, a tensor of \(\), got a tensor of \("),
        (TurnedLogits, r"^TurnedLogits.loss: expected logits \(images, labels\), a tensor of \(8, 3\), got .* of \(3"),
        (LabelLossAlone, r"^LabelLossAlone.loss: expected a loss and logits, got a tensor of \(\); correct the method"),
        (DetachedLabels, r"^DetachedLabels.loss: expected the sum .*, with a gradient, got a tensor of \(\) without"),
    ],
)  # fmt: skip
def test_what_learns_from_labels_is_checked(kind: type[LabelLearner], message: str) -> None:
    how = Training(stage="pretrain", schedule=STEPS, seed=0)
    targets = Targets(image_ids=np.arange(24), labels=np.repeat([0, 1, 2], 8))
    assert len(train_on_labels(LabelMean(backbone(), 3), IMAGES, targets, how, batch_size=8)) == 1
    with pytest.raises(MelaError, match=message):
        train_on_labels(kind(backbone(), 3), IMAGES, targets, how, batch_size=8)


class Alike(ImageLearner):
    """Every image is right; `right` says what comes in its place."""

    right: Any = None

    def forward(self, images: Tensor) -> Tensor:
        return self.backbone(images)

    def loss(self, run: Run, images: Tensor, *_: Any) -> Any:
        found = run(images).sum()
        return found if self.right is None else (found, self.right)


def test_what_learns_from_images_is_checked() -> None:
    how = Training(stage="methods", schedule=STEPS, seed=0)
    learner = Alike(backbone(), 24)
    for right, message in [
        (None, r"a loss, and whether each image is right, got a tensor of \(\); correct the method"),
        (torch.ones(3), r"whether each image is right, a tensor of \(8,\), got a tensor of \(3,\)"),
        (0.5, r"whether each image is right, a tensor of \(8,\), got float; correct the method$"),
    ]:
        learner.right = right
        with pytest.raises(MelaError, match=f"^Alike.loss: expected {message}"):
            train_without_labels(learner, IMAGES, np.arange(24), how, batch_size=8)
    learner.right = torch.ones(8, dtype=torch.bool)
    assert train_without_labels(learner, IMAGES, np.arange(24), how, batch_size=8)[0].accuracy == 100


def test_no_learning_rate_is_blamed_before_anything_is_learned() -> None:
    message = r"epoch 1, step 1: expected a finite loss, got nan; nothing has been learned yet, so corr"
    with pytest.raises(DivergedError, match=message):
        train(Strange(backbone()))
    with pytest.raises(DivergedError, match=r"epoch 1, step \d: expected a finite loss, got \w+; lower methods.learni"):
        train(ProtoNet(backbone()), schedule(1, 1e30))


def test_optimizers_that_do_not_exist() -> None:
    """Any other name would train as if it were SGD."""
    assert isinstance(STEPS.optimizer_of(nn.Linear(1, 1)), torch.optim.SGD)
    for name in ("adamw", "SGD"):
        message = rf"^optimizer of ProtoNet: expected sgd or adam \(which is AdamW\), got '{name}'; corr"
        with pytest.raises(MelaError, match=message):
            train(ProtoNet(backbone()), replace(STEPS, optimizer=name))


class Bare(Learner):
    """No rule."""


class BareImages(ImageLearner):
    def forward(self, images: Tensor) -> Tensor:
        return images


class OwnRate(LabelLearner):
    learning_rate = 0.1


def with_settings(**settings: Any) -> type[ProtoNet]:
    return type("Mine", (ProtoNet,), settings)


DERIVED = "METHOD: learner: expected a class derived from"


@pytest.mark.parametrize("title", [None, "", " ", "a|b", "a\nb", 3])
def test_titles_that_no_table_can_have(title: Any) -> None:
    for others in ({"title": title, "source": "Me, 2026"}, {"title": "mine", "source": title}):
        message = r"^METHOD: (title|source): expected a line of text without \|, got .*; corr"
        with pytest.raises(MelaError, match=message):
            Method(**others, sees="tasks", learner=ProtoNet)


@pytest.mark.parametrize(
    ("sees", "learner", "message"),
    [
        ("task", ProtoNet, "METHOD: sees: expected one of tasks, labels, images, got 'task'; correct it"),
        (["tasks"], ProtoNet, r"METHOD: sees: expected one of tasks, labels, images, got \['tasks'\]; correct it"),
        ("labels", ProtoNet, f"{DERIVED} LabelLearner, since it sees labels, got ProtoNet"),
        ("tasks", LabelLearner, f"{DERIVED} Learner, since .*, got LabelLearner; correct"),
        ("images", LabelLearner, f"{DERIVED} ImageLearner, since .*, got LabelLearner; c"),
        ("tasks", ImageLearner, f"{DERIVED} Learner, since .*, got ImageLearner; correct"),
        ("tasks", lambda given: ProtoNet(given), f"{DERIVED} Learner, .*, got <lambda>; c"),
        ("tasks", None, f"{DERIVED} Learner, since it sees tasks, got None; correct eith"),
        ("tasks", Bare, "Bare: expected logits of its own, got none; write it, see Learner"),
        ("images", BareImages, "BareImages: expected loss of its own, got none; write it, see ImageLearner"),
        ("labels", OwnRate, "OwnRate.learning_rate: expected none, since all that learns from labels .* got 0.1; rem"),
        ("tasks", with_settings(optimizer="sdg"), r"Mine.optimizer: expected sgd or adam \(adam is AdamW\), got 'sdg'"),
        (
            "tasks",
            with_settings(initial_scale="10"),
            "Mine.initial_scale: expected a number above 0, got '10'; correct",
        ),
        (
            "tasks",
            with_settings(logits=lambda self, support, labels, query: query),
            r"Mine.logits: expected to be called "
            r"with self, support, labels, query, ways, got too many positional arguments; correct it$",
        ),
        (
            "tasks",
            with_settings(losses=lambda self, a, b, c, d, e: a),
            "Mine.losses: expected .*, got missing a required",
        ),
        (
            "labels",
            type("Mine", (LabelLearner,), {"loss": lambda self: 0}),
            "Mine.loss: expected to be called with self, run, images, targets, generator, got too many",
        ),
        *(
            ("tasks", with_settings(learning_rate=rate), "Mine.learning_rate: expected a number above 0, got .*; corr")
            for rate in (0, -1, "0.1", None, float("nan"), float("inf"), True)
        ),
    ],
)
def test_what_a_method_and_its_class_say(sees: Any, learner: Any, message: str) -> None:
    with pytest.raises(MelaError, match=f"^{message}"):
        Method(title="mine", source="Me, 2026", sees=sees, learner=learner)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file among the methods."""
    folder = tmp_path / "mela/methods"
    folder.mkdir(parents=True)
    monkeypatch.setattr(mela.methods, "__path__", [*mela.methods.__path__, str(folder)])
    yield folder / "mine.py"
    sys.modules.pop("mela.methods.mine", None)
    vars(mela.methods).pop("mine", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"expected METHOD = Method\(...\), got None; add it$"),
        ("METHOD = 3", r"expected METHOD = Method\(...\), got 3; add it$"),
        ("import torch\nimport nonsense\n", "expected a module that can be imported, got ModuleNotFoundError: No "
         "module named 'nonsense'; correct it$"),
        ("x = 1\nx = = 2\n", "expected a module that can be imported, got SyntaxError: invalid syntax; correct it$"),
        ("\n\n1 / 0\n", "expected a module that can be imported, got ZeroDivisionError: division by zero; correct it$"),
        ("from mela.learners import Method\nMETHOD = Method(title='mine', source='Me', sees='task', learner=int)\n",
         "METHOD: sees: expected one of tasks, labels, images, got 'task'; correct it$"),
    ],
)  # fmt: skip
def test_files_that_are_no_method(text: str, message: str, mine: Path) -> None:
    mine.write_text(text, encoding="utf-8")
    with pytest.raises(MelaError, match=rf"^mela/methods/mine.py(, line [23])?: {message}") as found:
        find_method("mine")
    assert (", line" in str(found.value)) == ("can be imported" in message)
    assert methods_that_see("images") == ["cmc", "moco"], "one broken file hides no other mistake"
    with pytest.raises(MelaError, match=r"^method 'moca': there is none of this name; choose one of anil, .*, mine, "):
        find_method("moca")


def test_the_file_that_is_wrong_is_named(mine: Path) -> None:
    """A method that imports another one, or a helper."""
    other = mine.with_name("other.py")
    mine.write_text("import torch\n\nfrom mela.methods.other import METHOD\n", encoding="utf-8")
    for text, message in [
        ("from mela.learners.method import Method\nMETHOD = Method(title='', source='Me', sees='tasks', learner=int)\n",
         r"^mela/methods/other.py: METHOD: title: expected a line of text"),
        ("\n\n\n\n1 / 0\n", r"^mela/methods/other.py, line 5: expected a module .* got ZeroDivisionError: division by"),
        ("\n\n\nx = = 24", r"^mela/methods/other.py, line 4: expected a module .* got SyntaxError: invalid syntax; c"),
    ]:  # fmt: skip
        other.write_text(text, encoding="utf-8")
        with pytest.raises(MelaError, match=message):
            find_method("mine")
        sys.modules.pop("mela.methods.other", None)


def test_a_file_with_a_method(mine: Path) -> None:
    mine.write_text(
        "from mela.learners import Method\nfrom mela.methods.protonet import ProtoNet\n\n\nclass Mine(ProtoNet):\n"
        "    pass\n\n\nMETHOD = Method(title='mine', source='Me, 2026', sees='tasks', learner=Mine)\n",
        encoding="utf-8",
    )
    assert find_method("mine").title == "mine"
    assert "mine" in methods_that_see("tasks")
    folder = mine.parent / "packaged"
    folder.mkdir()
    (folder / "__init__.py").touch()
    assert "packaged" not in method_names(), "what is in a folder is in no fingerprint of the code"


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("self.more = torch.nn.Linear(1, 1)", "mela/methods/mine.py, line 8: expected to make Mine of an embedding, "
         r"got AttributeError: cannot assign module before Module.__init__\(\) call; correct it$"),
        ("super().__init__(backbone); self.more = torch.nn.Linear(backbone.width, 1)", "mela/methods/mine.py, line 8: "
         "expected to make Mine of an embedding, got AttributeError: 'Backbone' object has no attribute 'width'; cor"),
        ("super().__init__()", r"mela/methods/mine.py, line 8: .* got TypeError: .* missing 1 required positional arg"),
        ("super(Learner, self).__init__()", r"Mine.__init__: expected the embedding as its backbone, got none; begin"),
        ("raise MemoryError", "$"),
    ],
)  # fmt: skip
def test_classes_that_cannot_be_made(own: str, message: str, mine: Path) -> None:
    mine.write_text(
        "import torch\nfrom mela.learners.base import Learner\nfrom mela.learners.method import Method\n"
        "from mela.methods.protonet import ProtoNet\n\nclass Mine(ProtoNet):\n    def __init__(self, backbone):\n"
        f"        {own}\n\nMETHOD = Method(title='mine', source='Me, 2026', sees='tasks', learner=Mine)\n",
        encoding="utf-8",
    )
    with pytest.raises(MemoryError if own == "raise MemoryError" else MelaError, match=f"^{message}"):
        find_method("mine").build(backbone())


def test_classes_that_ask_for_something_else() -> None:
    """The numbers of labels and of images are told; those that learn from tasks are told none."""
    found = Method(title="mine", source="Me, 2026", sees="labels", learner=type("Mine", (LabelLearner,), {}))
    assert found.build(backbone(), 3).classifier.out_features == 3
    kind = type("Mine", (LabelLearner,), {"__init__": lambda self, backbone: None})
    with pytest.raises(MelaError, match=r"^Mine.__init__: expected to make Mine of an embedding and 3, got Typ"):
        Method(title="mine", source="Me, 2026", sees="labels", learner=kind).build(backbone(), 3)
