"""Training on labels by what images do not share with others of their task: against loops and steps by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch.nn import functional as F

from mela.data.array_types import Ints
from mela.data.augmentation import NONE
from mela.data.task_batches import TaskBatches
from mela.errors import MelaError
from mela.learners.task_centered import TaskCentered, less_task_means
from mela.params import check_document
from mela.runtime.compute import Compute
from mela.runtime.team import Team
from mela.training.embeddings import pretrain
from mela.training.loop import Training
from mela.training.targets import Targets
from tests.helpers.embedding import IMAGES, N_CLASSES, PER_CLASS, backbone, batch_of, near_their_class, schedule
from tests.helpers.project import change, run_stages

TRAINING = Training(stage="pretrain", schedule=schedule(2), seed=0, augmentation=NONE)
N = 24
# two tasks of three classes of four images
LABELS = np.arange(N) // 4
TASKS = np.array([70, 3]).repeat(12)
TARGETS = Targets(image_ids=np.arange(N), labels=LABELS, tasks=TASKS)


def batches_of(tasks: Ints, labels: Ints, batch_size: int, seed: int = 0) -> list[Ints]:
    dealt = TaskBatches(tasks, labels, batch_size)
    found = [batch.numpy() for batch in dealt.draw(torch.Generator().manual_seed(seed))]
    assert len(found) == dealt.count
    return found


@settings(deadline=None, max_examples=200)
@given(
    sizes=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=9),
    batch_size=st.integers(2, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_each_image_is_in_one_batch_with_others_of_its_task(sizes: list[list[int]], batch_size: int, seed: int) -> None:
    tasks = np.repeat(np.arange(len(sizes)) * 5 - 3, [sum(own) for own in sizes])
    labels = np.concatenate([np.repeat(np.arange(len(own)), own) for own in sizes])
    order = np.random.default_rng(seed).permutation(len(tasks))
    found = batches_of(tasks[order], labels[order], batch_size, seed)
    assert sorted(np.concatenate(found)) == [*range(len(tasks))]
    assert all(len(batch) > 1 for batch in found) or len(tasks) == 1
    for batch in found:
        for task in np.unique(tasks[order][batch]):
            shown = labels[order][batch[tasks[order][batch] == task]]
            assert len(shown) >= min(2, (tasks == task).sum())
            assert len(np.unique(shown)) >= min(2, len(np.unique(labels[tasks == task])))


def test_a_batch_has_images_of_every_class_of_its_tasks() -> None:
    """40 tasks of five classes of 20 images: in batches of 60 there are six portions of ten images."""
    tasks, labels = np.repeat(np.arange(40), 100), np.tile(np.arange(5).repeat(20), 40)
    found = batches_of(tasks, labels, 60)
    assert {len(batch) for batch in found} == {60, 50}
    assert len(found) == 67
    for batch in found:
        counts = pd.Series(1, index=[tasks[batch], labels[batch]]).groupby(level=[0, 1]).sum().unstack()
        assert (counts % 2 == 0).all(axis=None)
        assert (counts > 0).all(axis=None)
    assert np.mean([len(np.unique(tasks[batch])) for batch in found]) > 5
    again, others = batches_of(tasks, labels, 60), batches_of(tasks, labels, 60, seed=1)
    assert all(np.array_equal(one, other) for one, other in zip(found, again, strict=True))
    assert not all(np.array_equal(one, other) for one, other in zip(found, others, strict=True))


def test_means_are_those_of_tasks() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(9, 4, generator=generator, dtype=torch.float64)
    tasks = torch.tensor([5, -1, 5, 8, 8, 5, -1, 5, 2**40])
    expected = torch.stack([row - features[tasks == task].mean(0) for row, task in zip(features, tasks, strict=True)])
    torch.testing.assert_close(less_task_means(features, tasks), expected)
    shifted = features + torch.randn(1, 4, generator=generator, dtype=torch.float64) * tasks[:, None].sign()
    torch.testing.assert_close(less_task_means(shifted, tasks), expected)


def test_means_are_not_rounded_where_layers_are() -> None:
    features = 30 + torch.randn(8, 5, generator=torch.Generator().manual_seed(0))
    tasks = torch.tensor([0, 0, 0, 1, 1, 1, 1, 1])
    expected = less_task_means(features.double(), tasks).float()
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(less_task_means(features, tasks), expected)
        assert less_task_means(features.bfloat16(), tasks).dtype == torch.float32


def test_a_step_is_that_of_a_loop_over_tasks() -> None:
    """Gradient descent on the cross-entropy of features less the means of both tasks."""
    ours, expected = backbone(), backbone()
    training = replace(TRAINING, schedule=replace(schedule(1), momentum=0.0, weight_decay=0.0))
    classifier, _ = pretrain(ours, IMAGES, TARGETS, training, batch_size=N)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        learner = TaskCentered(expected, 6)
    learner.train()
    features = expected(batch_of(IMAGES[:N]))
    centered = torch.cat([part - part.mean(0) for part in features.split(12)])
    F.cross_entropy(learner.classifier(centered), torch.from_numpy(LABELS)).backward()
    for value, other in zip([*ours.parameters(), *classifier.parameters()], learner.parameters(), strict=True):
        assert other.grad is not None
        torch.testing.assert_close(value, other - 0.05 * other.grad, rtol=1e-4, atol=1e-6)


def test_each_image_is_of_one_task() -> None:
    manifest = pd.DataFrame({"task_id": [9, 9, 9, 4, 4], "image_id": [1, 1, 2, 0, 2]})
    labels = np.zeros(2, dtype=np.int64)
    targets = Targets(image_ids=np.array([0, 1]), labels=labels).of_tasks(manifest)
    assert targets.tasks is not None
    assert targets.tasks.tolist() == [4, 9]
    rotated = targets.rotated().tasks
    assert rotated is not None
    assert rotated.tolist() == [4, 9] * 4
    for image, count in ((2, 2), (7, 0)):
        with pytest.raises(
            MelaError, match=f"rounds: expected images of one task .*, but image {image} is in {count};"
        ):
            Targets(image_ids=np.array([0, image]), labels=labels).of_tasks(manifest)


def test_a_task_s_look_is_not_learned() -> None:
    """Each task has three of six patterns under a glare of its own; labels are task classes, as a first round has."""
    rng = np.random.default_rng(0)
    glare = rng.integers(0, 140, size=(40, 16, 16, 1)) * (rng.random((40, 4, 4, 1)) < 0.5).repeat(4, 1).repeat(4, 2)
    patterns = np.concatenate([rng.choice(N_CLASSES, 3, replace=False) for _ in range(40)])
    shown = IMAGES[patterns.repeat(6) * PER_CLASS + rng.integers(PER_CLASS, size=720)] // 2
    images = np.clip(shown + glare.repeat(18, axis=0), 0, 255).astype(np.uint8)
    targets = Targets(image_ids=np.arange(720), labels=np.arange(120).repeat(6), tasks=np.arange(40).repeat(18))
    found = {}
    for name, learned in {"centered": targets, "plain": replace(targets, tasks=None)}.items():
        model = backbone(width=16)
        pretrain(model, images, learned, replace(TRAINING, schedule=schedule(12)), batch_size=36)
        with torch.inference_mode():
            found[name] = near_their_class(model(batch_of(IMAGES)).numpy())
    assert found["centered"] > found["plain"] + 0.05


@pytest.mark.parametrize(
    ("change", "said"),
    [({"accumulate": 2}, "2 parts and 1 processes"), ({"compute": Compute(team=Team(size=2))}, "1 parts and 2 proc")],
)
def test_batches_are_not_divided(change: dict[str, object], said: str) -> None:
    with pytest.raises(MelaError, match=f"pretrain: expected whole batches with centered tasks, got {said}"):
        pretrain(backbone(), IMAGES, TARGETS, replace(TRAINING, **change), batch_size=8)


@pytest.mark.parametrize(("key", "parts"), [("pretrain.accumulate", 2), ("runtime.processes", 3)])
def test_parameters_that_would_divide_batches(project: Path, key: str, parts: int) -> None:
    change(project / "params.yaml", {key: parts, "rounds.first": True, "rounds.second": True})
    check_document(project / "params.yaml")
    change(project / "params.yaml", {"rounds.second": "centered"})
    with pytest.raises(MelaError, match=rf"rounds.second: expected {key}: 1 with centered tasks, .*, got {parts};"):
        check_document(project / "params.yaml")


@pytest.mark.slow
def test_a_round_centers_tasks(project: Path) -> None:
    """It learns another embedding, and refuses images that are in several tasks."""
    people = {"train": 24, "val": 160, "test": 160, "ways": 5, "share": 0.5}
    change(project / "params.yaml", {"rounds.first": True, "data.people": people, "embed.epochs": 0})
    run_stages("images", "names", "manifest", "embed", "extract", "round@first")
    model = Path("models/rounds/first.safetensors")
    before = load_file(model)
    change(project / "params.yaml", {"rounds.first": "centered"})
    run_stages("round@first")
    after = load_file(model)
    assert not all(torch.equal(value, before[name]) for name, value in after.items())
    change(project / "params.yaml", {"data.people": None})
    run_stages("images", "names", "manifest", "embed", "extract")
    with pytest.raises(
        MelaError, match="rounds: expected images of one task each where a round is centered, but image"
    ):
        run_stages("round@first")
