"""A class in each of its four rotations as a class of its own: against images that are turned beforehand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from scipy.sparse import csr_array
from torch import Tensor

from mela.data.augmentation import NONE
from mela.data.episodes import Episodes
from mela.data.quarter_turns import quarter_turned
from mela.errors import MelaError
from mela.io import store
from mela.learners.ridge import RidgeLearner
from mela.methods import find_method
from mela.models.backbones import Backbone
from mela.params import check_document
from mela.training.embeddings import pretrain
from mela.training.loop import Epoch, Training
from mela.training.on_images import train_on_labels
from mela.training.on_tasks import train_on_tasks
from mela.training.targets import Targets
from stages.common import paths
from tests.helpers.embedding import IMAGES, backbone, schedule
from tests.helpers.project import change, run_stages

TRAINING = Training(stage="pretrain", schedule=schedule(2), seed=0, augmentation=NONE)
ROTATED = replace(TRAINING, rotated_classes=True)
N = 24
HARD = Targets(image_ids=np.arange(N), labels=np.arange(N) % 3)
SHARES = np.random.default_rng(0).dirichlet(np.ones(3), N)
SOFT = Targets(image_ids=np.arange(N), labels=SHARES.argmax(1), shares=csr_array(SHARES))


def turned_beforehand() -> Any:
    """The first images four times, the r-th time turned r times."""
    return np.concatenate([np.rot90(IMAGES[:N], turns, (1, 2)) for turns in range(4)])


def test_each_image_has_its_own_turns() -> None:
    images = torch.rand(9, 2, 5, 5)
    turns = torch.tensor([3, 0, 1, 2, 2, 0, 3, 1, 1])
    expected = torch.stack([image.rot90(int(turn), (1, 2)) for image, turn in zip(images, turns, strict=True)])
    before = images.clone()
    assert torch.equal(quarter_turned(images, turns), expected)
    assert torch.equal(images, before)


def test_labels_are_told_apart_by_their_rotation() -> None:
    for targets in (HARD, SOFT):
        rotated = targets.rotated()
        assert (rotated.n_labels, len(rotated.image_ids)) == (12, 4 * N)
        assert rotated.turns is not None
        for row in range(4 * N):
            turn, image = divmod(row, N)
            assert (rotated.turns[row], rotated.image_ids[row]) == (turn, image)
            assert rotated.labels[row] == targets.labels[image] + 3 * turn
    for row in (0, N + 5, 4 * N - 1):
        turn, image = divmod(row, N)
        expected = np.zeros(12)
        expected[3 * turn : 3 * turn + 3] = SHARES[image]
        np.testing.assert_allclose(SOFT.rotated().batch(np.array([row]))[0], expected, rtol=1e-6)


@pytest.mark.parametrize("targets", [HARD, SOFT], ids=["hard", "soft"])
def test_it_is_training_on_images_that_are_turned_beforehand(targets: Targets) -> None:
    """With four times the labels; of the classifier, the part for upright images is left."""

    def learned(images: Any, known: Targets, training: Training) -> tuple[Backbone, dict[str, Tensor], list[Epoch]]:
        model = backbone()
        classifier, curve = pretrain(model, images, known, training, batch_size=8)
        return model, classifier.state_dict(), curve

    rotated = targets.rotated()
    by_hand = replace(rotated, image_ids=np.arange(4 * N), turns=None)
    model, weights, curve = learned(IMAGES, targets, ROTATED)
    expected, all_weights, curve_by_hand = learned(turned_beforehand(), by_hand, TRAINING)
    assert curve == curve_by_hand
    torch.testing.assert_close(model.state_dict(), expected.state_dict(), rtol=0, atol=0)
    assert [*weights] == ["weight", "bias"]
    for name, value in weights.items():
        assert len(value) == 3
        assert torch.equal(value, all_weights[name][:3])


class Looking(RidgeLearner):
    """Keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__(backbone(), 0.1, normalize=False)
        self.shown: list[Tensor] = []

    def forward(self, images: Tensor) -> Tensor:
        """Remember the images of a step."""
        self.shown.append(images.detach().clone())
        return super().forward(images)


def disjoint_tasks(*shapes: tuple[Sequence[int], int]) -> Episodes:
    """A task per (support images of each class, query images of every class), no two of which share an image."""
    rows: list[tuple[int, int, int, str]] = []
    for task, (shots, queries) in enumerate(shapes):
        for label, count in enumerate(shots):
            roles = ["support"] * count + ["query"] * queries
            rows += [(task, len(rows) + place, label, role) for place, role in enumerate(roles)]
    return Episodes(pd.DataFrame(rows, columns=["task_id", "image_id", "local_label", "role"]))


def turns_of(pictures: Tensor) -> dict[int, int]:
    """The quarter turns of images by their ids."""
    upright = torch.from_numpy(IMAGES).permute(0, 3, 1, 2) / 255
    turned = torch.stack([upright.rot90(turn, (2, 3)) for turn in range(4)])
    found = {}
    for picture in pictures:
        ((turn, image),) = ((turned - picture).abs().amax((2, 3, 4)) < 1e-6).nonzero().tolist()
        found[image] = turn
    return found


def test_all_images_of_a_class_of_a_task_are_turned_alike() -> None:
    """Support and query images, in tasks of any shape in one step; each class by itself, and anew in each epoch."""
    tasks = disjoint_tasks(([2, 3], 4), ([1, 1, 1], 2), ([2, 3], 4), ([2, 2], 1))
    learner, how = Looking(), replace(ROTATED, schedule=schedule(8))
    train_on_tasks(learner, IMAGES, tasks, how, tasks_per_epoch=None, tasks_per_step=4)
    patterns = set()
    for step in learner.shown:
        turns = turns_of(step)
        assert len(turns) == len(step) == sum(len(task.image_ids) for task in tasks)
        pattern = []
        for task in tasks:
            for label in np.unique(task.labels):
                (turn,) = {turns[image] for image in task.image_ids[task.labels == label].tolist()}
                pattern.append(turn)
        patterns.add(tuple(pattern))
    assert len(patterns) == 8
    assert set(np.array([*patterns]).ravel().tolist()) == {0, 1, 2, 3}
    assert all(len({pattern[column] for pattern in patterns}) > 1 for column in range(9))


def test_methods_that_rotate_images_themselves_refuse_it() -> None:
    for name in ("rotation", "s2m2"):
        learner = find_method(name).build(backbone(), 12)
        with pytest.raises(MelaError, match=r"pretrain.rotated_classes: expected false with \w+, which rotates"):
            train_on_labels(learner, IMAGES, HARD.rotated(), ROTATED, batch_size=8)


def test_blocks_that_contradict_it(project: Path) -> None:
    change(project / "params.yaml", {"pretrain.rotated_classes": True})
    check_document(project / "params.yaml")
    change(project / "params.yaml", {"model.backbone": "timm:resnet18", "model.train": "head"})
    with pytest.raises(
        MelaError, match=r"params.yaml: pretrain.rotated_classes: expected false with model.train: head"
    ):
        check_document(project / "params.yaml")
    change(project / "params.yaml", {"model.keep_features": False})
    check_document(project / "params.yaml")
    change(project / "params.yaml", {"data.rotations": True})
    with pytest.raises(MelaError, match=r"pretrain.rotated_classes: expected false with data.rotations: true"):
        check_document(project / "params.yaml")


def weights_of_both() -> list[dict[str, Tensor]]:
    return [load_file(path) for path in (paths.INITIAL, paths.ORACLE)]


@pytest.mark.slow
def test_the_pipeline_learns_rotated_classes(project: Path) -> None:
    """Both embeddings are others than without; so is the last one with smoothed labels, and the first with heads."""
    run_stages("images", "manifest", "embed", "label_oracle", "pretrain@oracle")
    before = weights_of_both()
    change(project / "params.yaml", {"embed.rotated_classes": True, "pretrain.rotated_classes": True})
    run_stages("embed", "pretrain@oracle")
    for one, other in zip(before, weights_of_both(), strict=True):
        assert not all(torch.equal(value, other[name]) for name, value in one.items())
    loss = store.read_json(Path("results/pretrain/oracle.json"))["loss"]
    change(project / "params.yaml", {"pretrain.label_smoothing": 0.5})
    run_stages("pretrain@oracle")
    assert store.read_json(Path("results/pretrain/oracle.json"))["loss"] > loss
    change(project / "params.yaml", {"embed.base_learner": "task_heads"})
    ridge = pd.read_csv(paths.EMBED_CURVE)
    run_stages("embed")
    assert not pd.read_csv(paths.EMBED_CURVE)["loss"].equals(ridge["loss"])
