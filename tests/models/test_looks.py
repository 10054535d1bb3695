"""How the features of task classes move under other people's looks."""

import numpy as np
import pytest
import torch
from torch import nn

from mela.data.augmentation import NONE, Augmentation
from mela.models.backbones import Backbone
from mela.models.looks import CLASSES, IMAGES, LOOKS, look_covariance

BRIGHT = Augmentation(crop_padding=0, flip=False, jitter=0.5)


class Levels(nn.Module):
    """The mean level of each channel, which only colours change."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.ones(()))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.factor * images.mean((2, 3))


def levels() -> Backbone:
    return Backbone(Levels(), 3, [0.0] * 3, [1.0] * 3)


def grey(n_images: int) -> np.ndarray:
    shades = np.random.default_rng(0).integers(60, 180, (n_images, 1, 1, 1))
    return np.broadcast_to(shades, (n_images, 16, 16, 3)).astype(np.uint8)


def covariance(augmentation: Augmentation, n_classes: int = 40, size: int = 6, seed: int = 0) -> np.ndarray | None:
    classes = np.repeat(np.arange(n_classes), size)
    return look_covariance(levels(), grey(n_classes * size), np.arange(len(classes)), classes, augmentation, seed=seed)


@pytest.mark.parametrize("augmentation", [NONE, Augmentation(crop_padding=4, flip=True, jitter=0.0)])
def test_crops_and_mirroring_are_nobodys_look(augmentation: Augmentation) -> None:
    assert covariance(augmentation) is None


def test_a_tint_moves_no_grey_images() -> None:
    """Nothing is known of looks then, rather than that there are none."""
    backbone = Backbone(Levels(), 1, [0.0], [1.0])
    images, classes = grey(40)[..., :1], np.arange(40)
    tint = Augmentation(crop_padding=0, flip=False, jitter=0.0, tint=0.3)
    assert look_covariance(backbone, images, classes, classes, tint, seed=0) is None


def test_what_is_cropped_does_not_count() -> None:
    found = covariance(BRIGHT)
    np.testing.assert_array_equal(found, covariance(Augmentation(crop_padding=4, flip=True, jitter=0.5)))


def test_it_is_the_variance_of_means_that_looks_change() -> None:
    """The brightness of grey images is multiplied by 0.5 to 1.5, which is the same for all images of a task class."""
    found = covariance(BRIGHT, n_classes=400)
    assert found is not None
    shades = grey(400 * 6)[:, 0, 0, 0].reshape(400, 6)[:, :IMAGES].mean(axis=1) / 255
    expected = (shades**2).mean() / 12
    np.testing.assert_allclose(found, np.full((3, 3), expected), rtol=0.1)


@pytest.mark.parametrize("batch", [1, 7, 40])
def test_all_images_of_a_task_class_have_one_look(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """And it does not matter how images are batched: the factor of the brightness is that of the task class."""
    factors = []

    def shown(backbone, images, image_ids, change):
        batches = [images[image_ids[first : first + batch]] for first in range(0, len(image_ids), batch)]
        seen = [change(torch.from_numpy(part.transpose(0, 3, 1, 2).copy())).numpy() for part in batches]
        factors.append(np.concatenate(seen)[:, 0, 0, 0] / (images[image_ids][:, 0, 0, 0] / 255))
        return np.zeros((len(image_ids), 3), dtype=np.float32)

    monkeypatch.setattr("mela.models.looks.extract_features", shown)
    covariance(BRIGHT)
    looks = np.array(factors).reshape(LOOKS, IMAGES, 40)
    np.testing.assert_allclose(looks, np.broadcast_to(looks[:, :1], looks.shape), rtol=1e-5)
    assert len(np.unique(looks[:, 0].round(4))) > 0.9 * LOOKS * 40, "each look of a task class is another one"


@pytest.mark.parametrize("batch", [1, 7, 40])
def test_surroundings_of_a_look_are_of_one_other_class(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    """And however images are batched: each class has a shade of its own here, which corners take from another class."""
    around = Augmentation(crop_padding=4, flip=True, jitter=0.0, surroundings=1)
    classes = np.repeat(np.arange(40), 6)
    images = np.broadcast_to(classes[:, None, None, None], (240, 16, 16, 3)).astype(np.uint8)
    corners, middles = [], []

    def shown(backbone, images, image_ids, change):
        batches = [images[image_ids[first : first + batch]] for first in range(0, len(image_ids), batch)]
        seen = torch.cat([change(torch.from_numpy(part.transpose(0, 3, 1, 2).copy())) for part in batches]) * 255
        corners.append(seen[:, 0, 0, 0].numpy())
        middles.append(seen[:, 0, 8, 8].numpy())
        return np.zeros((len(image_ids), 3), dtype=np.float32)

    monkeypatch.setattr("mela.models.looks.extract_features", shown)
    look_covariance(levels(), images, np.arange(240), classes, around, seed=0)
    np.testing.assert_allclose(middles, np.broadcast_to(np.arange(40), (LOOKS * IMAGES, 40)), atol=1e-4)
    looks = np.array(corners).reshape(LOOKS, IMAGES, 40)
    np.testing.assert_allclose(looks, np.broadcast_to(looks[:, :1], looks.shape), atol=1e-4)
    assert (abs(looks[:, 0] - np.arange(40)) > 0.5).mean() > 0.9
    assert len(np.unique(looks[:, 0].round(), axis=0)) == LOOKS


def test_it_does_not_depend_on_torchs_state() -> None:
    torch.manual_seed(1)
    found = covariance(BRIGHT)
    torch.manual_seed(2)
    np.testing.assert_array_equal(found, covariance(BRIGHT))
    assert not np.array_equal(found, covariance(BRIGHT, seed=1))


def test_classes_of_few_images_show_them_again() -> None:
    found = covariance(Augmentation(crop_padding=0, flip=False, jitter=0.0, blur=0.5, tint=0.3), size=1)
    assert found is not None
    assert np.isfinite(found).all()
    assert (np.diag(found) > 0).all()


def test_of_many_task_classes_some_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counted(backbone, images, image_ids, change):
        seen.append(len(image_ids))
        return np.zeros((len(image_ids), 3), dtype=np.float32)

    monkeypatch.setattr("mela.models.looks.extract_features", counted)
    covariance(BRIGHT, n_classes=2 * CLASSES + 1, size=1)
    assert len(seen) == LOOKS * IMAGES
    assert set(seen) == {CLASSES}
