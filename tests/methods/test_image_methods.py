"""Methods that see images alone: their losses against other ways to the same figures, and that each of them learns."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from lightly.loss import NTXentLoss
from torch import Tensor, nn
from torch.nn import functional as F

from mela.data.augmentation import NONE, Augmentation, grey
from mela.errors import MelaError
from mela.learners import views
from mela.learners.base import contrast
from mela.learners.views import random_colours, random_parts, random_view
from mela.methods import cmc, find_method, method_names, moco
from mela.methods.cmc import CMC, SplitBackbone, split
from mela.methods.moco import MoCo
from mela.models.features import extract_features
from mela.runtime.seeding import seeded
from mela.training.loop import Training
from mela.training.on_images import train_without_labels
from tests.helpers.embedding import IMAGES, PER_CLASS, backbone, near_their_class, schedule, state_of

LEARN_FROM_IMAGES = [name for name in method_names() if find_method(name).sees == "images"]
IDS = np.arange(len(IMAGES))


def coloured() -> npt.NDArray[np.uint8]:
    """The patterns with a little of a colour for each class, and noise."""
    tints = 0.8 + 0.2 * np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    noise = np.random.default_rng(0).normal(scale=20, size=(len(IDS), 16, 16, 3))
    return (IMAGES * tints[IDS // PER_CLASS][:, None, None] + noise).clip(0, 255).astype(np.uint8)


COLOURED = coloured()


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def batch(count: int = 8, channels: int = 1) -> Tensor:
    return torch.rand(count, channels, 16, 16, generator=generator())


def test_contrast_by_hand() -> None:
    logits = torch.tensor([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    loss, right = contrast(logits, torch.tensor([0, 2]))
    first = np.log(np.exp([1.0, 2.0, 0.0]).sum()) - 1
    second = np.log(np.exp([0.0, 0.0, 3.0]).sum()) - 3
    assert loss.item() == pytest.approx(first + second, rel=1e-6)
    assert right.tolist() == [False, True]


def test_mocos_loss_is_that_of_lightly() -> None:
    learner = MoCo(backbone(), 40).eval()
    images = batch()
    known = NTXentLoss(temperature=moco.TEMPERATURE, memory_bank_size=tuple(learner.queue.shape))
    known.memory_bank.bank = learner.queue.clone()
    known.memory_bank.bank_ptr = torch.zeros(1, dtype=torch.int64)
    source = generator()
    one, other = random_view(images, NONE, source), random_view(images, NONE, source)
    leader, follower = learner(one), learner.follower(other)
    loss, _ = learner.loss(learner, images, NONE, generator())
    torch.testing.assert_close(loss / 8, known(leader, follower))
    torch.testing.assert_close(learner.queue, known.memory_bank.bank, msg="both remember the same")


def test_moco_keeps_the_newest() -> None:
    learner = MoCo(backbone(), 10)
    assert learner.queue.shape == (5, 128)
    keys = F.normalize(torch.arange(8.0)[:, None] + torch.arange(128.0), dim=1)
    learner._keep(keys[:3])
    learner._keep(keys[3:6])
    torch.testing.assert_close(learner.queue, keys[[5, 1, 2, 3, 4]])
    learner._keep(keys)
    assert int(learner.place) == 4
    torch.testing.assert_close(learner.queue, keys[[4, 5, 6, 7, 3]], msg="of a batch that is longer, the newest")


def test_moco_follows_with_weights_and_statistics() -> None:
    learner = MoCo(backbone(), 40).train()
    start = state_of(learner.follower)
    learner.loss(learner, batch(), NONE, generator())
    for parameter in learner.parameters():
        parameter.data.add_(1)
    leaders, between = state_of(nn.Sequential(learner.backbone, learner.projection)), state_of(learner.follower)
    learner._follow()
    moved = 0
    for name, value in learner.follower.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(value, 0.99 * between[name] + 0.01 * leaders[name])
            moved += int(not torch.equal(between[name], start[name]))
    assert moved >= 8, "statistics of four BatchNorm layers had moved before"
    assert not learner.follower.training
    assert not any(parameter.requires_grad for parameter in learner.follower.parameters())


def test_cmc_by_hand() -> None:
    learner = CMC(backbone(), 20).eval()
    images, source = batch(3), generator()
    codes = []
    for view, (body, project) in enumerate(zip(learner.backbone.body.children(), learner.projections, strict=True)):
        seen = split(learner.backbone.normalized(random_parts(images, NONE, source)), grey=True)[view]
        codes.append(F.normalize(project(body(seen)), dim=1).detach().numpy().astype(np.float64))
    scores = np.exp(codes[0] @ codes[1].T / 0.07)
    expected = -np.log(np.diag(scores) / scores.sum(1)) - np.log(np.diag(scores) / scores.sum(0))
    right = (scores.argmax(1) == range(3)) & (scores.argmax(0) == range(3))
    loss, found = learner.loss(learner, images, NONE, generator())
    assert loss.item() == pytest.approx(expected.sum(), rel=1e-4)
    assert found.tolist() == right.tolist()


def test_features_are_those_of_both_views() -> None:
    learner, images = CMC(backbone(), 20).eval(), batch()
    one, other = split(learner.backbone.normalized(images), grey=True)
    first, second = learner.backbone.body.children()
    torch.testing.assert_close(learner.backbone(images), torch.cat([first(one), second(other)], dim=1))


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_is_its_two_views(channels: int) -> None:
    images = batch(channels=channels)
    common, rest = split(images, grey=channels == 1)
    torch.testing.assert_close(common + rest, images)
    if channels == 3:
        torch.testing.assert_close(common[:, 0], images.mean(1))
        torch.testing.assert_close(rest.sum(1), torch.zeros(8, 16, 16), atol=1e-6, rtol=0)
    else:
        torch.testing.assert_close(common[:, 0, 8, 8], images[:, 0, 6:11, 6:11].mean((1, 2)))
        torch.testing.assert_close(common[:, 0, 0, 0], images[:, 0, :3, :3].mean((1, 2)), msg="no black border")


def test_both_networks_learn() -> None:
    learner = CMC(backbone(), 20)
    assert isinstance(learner.backbone, SplitBackbone)
    assert learner.backbone(batch()).shape == (8, 2 * backbone().dimensions)
    learner.loss(learner, batch(), NONE, generator())[0].backward()
    assert all(parameter.grad is not None for parameter in learner.parameters())


def test_random_parts_lie_inside_and_are_of_the_stated_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """An image whose value is the place shows which part was taken."""
    side = 64
    row = (torch.arange(side) + 0.5) / side
    images = torch.stack([row[:, None].expand(side, side), row.expand(side, side)]).expand(400, 2, side, side)
    found = random_parts(images, NONE, generator())
    assert found.min() >= row[0]
    assert found.max() <= row[-1]
    # a pixel in from the border on both sides, where the image ends
    sides = torch.stack([found[:, 0, -2, 0] - found[:, 0, 1, 0], found[:, 1, 0, -2] - found[:, 1, 0, 1]])
    sides = sides * side / (side - 3)
    areas, aspects = sides.prod(0), sides[1] / sides[0]
    assert 0.18 < areas.min() < 0.25
    assert 0.9 < areas.max() < 1.05
    assert areas.mean() == pytest.approx(0.6, abs=0.06)
    assert 0.7 < aspects.min() < 0.8
    assert 1.25 < aspects.max() < 1.4
    assert found.std(0).min() > 0, "each image has a part of its own"
    monkeypatch.setattr(views, "AREA", (1.0, 1.0))
    monkeypatch.setattr(views, "ASPECT", (1.0, 1.0))
    torch.testing.assert_close(random_parts(images, NONE, generator()), images, atol=1e-5, rtol=0)


def test_each_view_is_changed_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "AREA", (1.0, 1.0))
    monkeypatch.setattr(views, "ASPECT", (1.0, 1.0))
    images, source = batch(50), generator()
    one, other = (random_parts(images, Augmentation(crop_padding=0, flip=True, jitter=0.5), source) for _ in range(2))
    flips = []
    for seen in (one, other):
        flipped = (seen - images.flip(3)).abs().amax((1, 2, 3)) < 1e-4
        assert bool((flipped | ((seen - images).abs().amax((1, 2, 3)) < 1e-4)).all()), "colours stay"
        flips.append(flipped)
    assert 10 < int((flips[0] != flips[1]).sum()) < 40


@pytest.mark.parametrize("channels", [1, 3])
def test_random_colours(channels: int) -> None:
    images = batch(200, channels)
    found = random_colours(images, generator())
    assert found.shape == images.shape
    assert found.min() >= 0
    assert found.max() <= 1
    if channels == 3:
        without = (found - grey(found)).abs().amax((1, 2, 3)) < 1e-4
        assert 20 < int(without.sum()) < 60


@pytest.mark.parametrize("kind", [moco.MoCo, cmc.CMC])
def test_the_seed_decides_what_is_drawn(kind: type[MoCo] | type[CMC]) -> None:
    losses = []
    for _ in range(2):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            learner = kind(backbone(), 20).eval()
        losses.append(learner.loss(learner, batch(), NONE, generator())[0])
    assert torch.equal(*losses)


def test_a_batch_is_one_whole() -> None:
    training = Training(stage="pretrain", schedule=schedule(1, 0.1), seed=0, accumulate=2)
    with pytest.raises(MelaError, match=r"^pretrain\.accumulate is 2, .*; set it to 1"):
        train_without_labels(MoCo(backbone(), 20), COLOURED, IDS, training, batch_size=12)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARN_FROM_IMAGES)
def test_a_method_learns(name: str) -> None:
    """Images of one class end up together without any label: far above chance, 17%, and what it was at the start."""
    with seeded(0):
        learner = find_method(name).build(backbone(channels=3, width=8), len(IDS))

    def together() -> float:
        known = extract_features(learner.backbone, COLOURED, IDS)
        return near_their_class(known / np.linalg.norm(known, axis=1, keepdims=True))

    before = together()
    training = Training(stage="pretrain", schedule=schedule(30, learner.learning_rate), seed=0)
    train_without_labels(learner, COLOURED, IDS, training, batch_size=12)
    assert together() > max(0.85, before + 0.2), before
