"""Methods that see global labels: their losses by hand, and that each of them learns."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from mela.errors import MelaError
from mela.io.tensors import write_trained
from mela.learners.base import ImageLearner, LabelLearner, Learner
from mela.learners.mixing import Mix, mixed_features, mixing_layers
from mela.methods import find_method, method_names
from mela.methods.distill import TEMPERATURE, DistillLearner
from mela.methods.mixup import MixupLearner
from mela.methods.rotation import RotationLearner
from mela.methods.s2m2 import S2M2Learner
from mela.models.features import extract_features
from mela.runtime.compute import Compute
from mela.runtime.seeding import seeded
from mela.training.learner_files import load_learned, save_learner
from mela.training.loop import Training
from mela.training.on_images import train_on_labels
from mela.training.targets import Targets
from tests.helpers.embedding import IMAGES, N_CLASSES, PER_CLASS, backbone, configuration, near_their_class, schedule

LEARN_FROM_LABELS = [name for name in method_names() if find_method(name).sees == "labels"]
TARGETS = Targets(image_ids=np.arange(len(IMAGES)), labels=np.repeat(np.arange(N_CLASSES), PER_CLASS))
CPU = torch.device("cpu")


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def batch(count: int = 8) -> tuple[Tensor, Tensor]:
    images = torch.rand(count, 1, 16, 16, generator=generator())
    return images, torch.arange(count) % 3


def ready(name: str) -> LabelLearner:
    learner: LabelLearner = find_method(name).build(backbone(), N_CLASSES)
    if isinstance(learner, DistillLearner):
        learner.learn_from(LabelLearner(backbone(), N_CLASSES))
    return learner


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_rotated_images_have_a_class_and_a_rotation(smoothing: float) -> None:
    learner = RotationLearner(backbone(), 3).eval()
    learner.label_smoothing = smoothing
    classes = partial(F.cross_entropy, reduction="sum", label_smoothing=smoothing)
    images, targets = batch()
    chosen = torch.randperm(8, generator=generator())[:2]
    expected = torch.zeros(())
    for turns in range(4):
        features = learner.backbone(images[chosen].rot90(turns, (2, 3)))
        expected = expected + classes(learner.classifier(features), targets[chosen])
        turned = torch.full((2,), turns)
        expected = expected + F.cross_entropy(learner.rotations(features), turned, reduction="sum")
    torch.testing.assert_close(learner.rotated_loss(learner, images, targets, generator()), expected / 2)
    plain = classes(learner.logits(images), targets)
    loss, logits = learner.loss(learner, images, targets, generator())
    torch.testing.assert_close(loss, plain + expected / 2)
    torch.testing.assert_close(logits, learner.logits(images))


@pytest.mark.parametrize(("name", "expected"), [("conv4", [0, 4, 8, 12]), ("resnet12", [0, 1, 2, 3])])
def test_images_may_be_mixed_between_blocks(name: str, expected: list[int]) -> None:
    body = backbone(name).eval()
    assert mixing_layers(body) == expected
    images, _ = batch(4)
    partners = torch.tensor([2, 3, 0, 1])
    plain = body(images)
    for layer in expected:
        torch.testing.assert_close(mixed_features(body, images, Mix(layer, 1.0, partners)), plain)
        torch.testing.assert_close(mixed_features(body, images, Mix(layer, 0.0, partners)), plain[partners])
        half = mixed_features(body, images, Mix(layer, 0.5, partners))
        torch.testing.assert_close(half, half[partners], msg="half of each is the same for both")
    mixed = 0.3 * images + 0.7 * images[partners]
    torch.testing.assert_close(mixed_features(body, images, Mix(0, 0.3, partners)), body(mixed))


def test_shares_are_those_of_a_beta_distribution() -> None:
    drawn, source = backbone(), generator()
    mixes = [Mix.draw(drawn, 4, source) for _ in range(4000)]
    shares = np.array([mix.share for mix in mixes])
    assert shares.mean() == pytest.approx(0.5, abs=0.02)
    assert shares.var() == pytest.approx(1 / 20, abs=0.005), "of Beta(2, 2)"
    assert {mix.layer for mix in mixes} == {0, 4, 8, 12}
    assert np.bincount([mix.layer for mix in mixes]).max() < 1200


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("kind", [MixupLearner, S2M2Learner])
def test_mixed_images_have_both_labels(kind: type[Any], smoothing: float) -> None:
    learner = kind(backbone(), 3).eval()
    learner.label_smoothing = smoothing
    classes = partial(F.cross_entropy, reduction="sum", label_smoothing=smoothing)
    images, targets = batch()
    source = generator()
    mix = Mix.draw(learner.backbone, 8, source)
    logits = learner.classifier(mixed_features(learner.backbone, images, mix))
    shares = mix.share * F.one_hot(targets, 3) + (1 - mix.share) * F.one_hot(targets[mix.partners], 3)
    expected = (classes(logits, shares) + classes(learner.logits(images), targets)) / 2
    if kind is S2M2Learner:
        expected = expected + learner.rotated_loss(learner, images, targets, source)
    torch.testing.assert_close(learner.loss(learner, images, targets, generator())[0], expected)


def test_a_student_learns_from_labels_and_teacher() -> None:
    teacher, student = LabelLearner(backbone(), 3), DistillLearner(backbone(), 3).eval()
    student.learn_from(teacher)
    images, targets = batch()
    loss, logits = student.loss(student, images, targets, generator())
    wanted = (teacher.logits(images) / TEMPERATURE).softmax(1)
    found = (logits / TEMPERATURE).softmax(1)
    divergence = (wanted * (wanted / found).log()).sum() * TEMPERATURE**2
    torch.testing.assert_close(loss, (F.cross_entropy(logits, targets, reduction="sum") + divergence) / 2)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    start = [value.clone() for value in student.parameters()]
    student.train()
    loss.backward()
    torch.optim.SGD(student.parameters(), 0.1).step()
    assert not teacher.training
    assert not any(torch.equal(value, old) for value, old in zip(student.parameters(), start, strict=True))
    assert not any(name.startswith("_teacher") for name in student.state_dict())
    torch.testing.assert_close(teacher.state_dict(), before, rtol=0, atol=0)


def test_a_student_without_a_teacher() -> None:
    images, targets = batch()
    with pytest.raises(MelaError, match=r"^distill: expected a teacher, got none; .*--teacher"):
        DistillLearner(backbone(), 3).loss(LabelLearner(backbone(), 3), images, targets, generator())


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARN_FROM_LABELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_method_learns(name: str, dtype: torch.dtype) -> None:
    """Classes that it was told end up apart: a nearest class mean finds nearly all of the other images."""
    with seeded(0):
        learner, teacher = ready(name), LabelLearner(backbone(), N_CLASSES)
    settling = replace(schedule(30, 0.02), milestones=[25])
    training = Training(stage="pretrain", schedule=settling, seed=0, compute=Compute(dtype=dtype))
    if isinstance(learner, DistillLearner):
        train_on_labels(teacher, IMAGES, TARGETS, training, batch_size=12)
        learner.learn_from(teacher)

    before = near_their_class(extract_features(learner.backbone, IMAGES, TARGETS.image_ids))
    curve = train_on_labels(learner, IMAGES, TARGETS, training, batch_size=12)
    assert curve[-1].accuracy > 80
    assert near_their_class(extract_features(learner.backbone, IMAGES, TARGETS.image_ids)) > max(0.85, before)


@pytest.mark.parametrize("name", method_names())
def test_what_was_learned_comes_back(tmp_path: Path, name: str) -> None:
    method, path = find_method(name), tmp_path / "model.safetensors"
    learner = method.build(backbone(seed=5), *([] if method.sees == "tasks" else [7]))
    save_learner(path, learner, name, configuration())
    learned = load_learned(path, CPU)
    assert (learned.method, learned.configuration) == (name, configuration())
    found = learned.learner
    assert isinstance(found, {"tasks": Learner, "labels": LabelLearner, "images": ImageLearner}[method.sees])
    assert type(found) is type(learner)
    torch.testing.assert_close(found.state_dict(), learner.state_dict(), rtol=0, atol=0)
    assert learned.backbone is found.backbone
    assert not found.training
    assert save_learner(tmp_path / "again", learner, name, configuration()) is None
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_files_that_hold_no_learner(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(MelaError, match=r"no such file; run `dvc repro`, or the stage that makes it, first$"):
        load_learned(path, CPU)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(MelaError, match=r"expected a safetensors file, got .*; train it again$"):
        load_learned(path, CPU)
    save_learner(path, ready("rfs"), "protonet", configuration())
    with pytest.raises(MelaError, match=r"expected a learner, got .*; train it again$"):
        load_learned(path, CPU)
    save_learner(path, ready("rfs"), "later", configuration())
    with pytest.raises(MelaError, match=r"expected a method of this MeLa, found 'later'; install the one that has .*$"):
        load_learned(path, CPU)
    write_trained(path, ready("rfs"), {"kind": "mela.learner/2"})
    kinds = "expected a model of kind mela.backbone/1 or mela.learner/1, found mela.learner/2"
    with pytest.raises(MelaError, match=f"{kinds}; train it again$"):
        load_learned(path, CPU)
    save_learner(path, ready("rfs"), "rfs", configuration(width=5))
    with pytest.raises(MelaError, match=r"its weights do not fit its configuration .*"):
        load_learned(path, CPU)
    save_learner(path, ready("rfs"), "rfs", configuration())
    with pytest.raises(MelaError, match=r"expected images of \(20, 20, 1\), the packed ones, got a model for .*"):
        load_learned(path, CPU, np.zeros((1, 20, 20, 1), dtype=np.uint8))
