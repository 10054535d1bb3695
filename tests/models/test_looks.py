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


def test_images_that_change_each_by_itself_would_move_means_by_less() -> None:
    together, alone = covariance(BRIGHT, n_classes=400), covariance(BRIGHT, n_classes=400 * 6, size=1)
    assert together is not None
    assert alone is not None
    assert 0.8 < np.trace(together) / np.trace(alone) < 1.2


def test_it_does_not_depend_on_how_images_are_batched_and_on_torchs_state() -> None:
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
