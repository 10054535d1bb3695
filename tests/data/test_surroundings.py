"""Surroundings of training images that come from other images."""

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from mela.data.augmentation import Augmentation
from mela.data.surroundings import HIGHEST, LARGEST, LOWEST, SEAM, SMALLEST, Surroundings

ALWAYS = Augmentation(crop_padding=0, flip=False, jitter=0, surroundings=1)
MIXED = Augmentation(crop_padding=2, flip=True, jitter=0.4, zoom=0.3, tint=0.3, surroundings=0.5)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int, channels: int = 3, height: int = 8, width: int = 8) -> Tensor:
    return torch.rand(count, channels, height, width, generator=seeded(99))


def test_what_stays_is_what_the_formula_says() -> None:
    around = Surroundings(donors=torch.arange(2), sizes=torch.tensor([0.6, 0.9]), powers=torch.tensor([3.0, 8.0]))
    found = around.shares(9, 11, torch.device("cpu"))
    assert found.shape == (2, 1, 9, 11)
    for number, (size, power) in enumerate([(0.6, 3.0), (0.9, 8.0)]):
        for row, y in enumerate(np.linspace(-1, 1, 9)):
            for column, x in enumerate(np.linspace(-1, 1, 11)):
                distance = (abs(x) ** power + abs(y) ** power) ** (1 / power)
                expected = min(1.0, max(0.0, (size - distance) / SEAM + 0.5))
                assert found[number, 0, row, column].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("side", [8, 32, 33, 84])
def test_the_middle_stays_and_corners_do_not(side: int) -> None:
    around = Surroundings.draw(1, 500, seeded())
    shares = around.shares(side, side, torch.device("cpu"))[:, 0]
    middle = slice(round(0.4 * side), round(0.6 * side))
    assert (shares[:, middle, middle] == 1).all()
    corners = shares[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    # a corner is at least a factor 2**(1/8.4) further from the middle than an edge
    assert (corners[around.sizes < 1.03] == 0).all()
    assert (corners[:, 0] == corners[:, 3]).all()


def test_sizes_and_shapes_are_drawn_evenly_and_each_image_surrounds_one() -> None:
    around = Surroundings.draw(1, 2000, seeded())
    assert torch.equal(around.donors.sort().values, torch.arange(2000))
    for drawn, lowest, highest in ((around.sizes, SMALLEST, LARGEST), (around.powers, LOWEST, HIGHEST)):
        assert stats.kstest(drawn.numpy(), stats.uniform(lowest, highest - lowest).cdf).pvalue > 1e-3


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_as_many_images_as_asked_for_get_other_surroundings(share: float) -> None:
    batch = images(1000)
    changed = (Augmentation(crop_padding=0, flip=False, jitter=0, surroundings=share)(batch, seeded()) != batch).any(1)
    count = int(changed.flatten(1).any(1).sum())
    # on average, one image of a batch surrounds itself
    if share == 1:
        assert count >= 995
    else:
        assert stats.binomtest(count, 999, share).pvalue > 1e-3
    assert not changed[:, 3:5, 3:5].any()


def test_they_come_from_the_donor_alone() -> None:
    batch = torch.arange(20.0).view(20, 1, 1, 1).expand(-1, 3, 16, 16) / 20
    drawn = ALWAYS.draw(20, seeded())
    assert drawn.surroundings is not None
    changed = drawn(batch)
    assert torch.equal(changed[:, :, 7:9, 7:9], batch[:, :, 7:9, 7:9])
    torch.testing.assert_close(changed[:, 0, 0, 0], batch[drawn.surroundings.donors, 0, 0, 0])


@pytest.mark.parametrize("channels", [1, 3])
def test_a_part_is_changed_as_it_is_among_the_others(channels: int) -> None:
    batch = images(20, channels)
    changes = MIXED.draw(20, seeded())
    whole = changes(batch)
    for part in (slice(0, 7), slice(7, 8), slice(8, 20), slice(3, 3)):
        assert torch.equal(changes[part](batch[part], batch), whole[part])


def test_bytes_and_floats_are_changed_alike() -> None:
    batch = torch.randint(0, 256, (12, 3, 8, 8), generator=seeded()).to(torch.uint8)
    torch.testing.assert_close(MIXED(batch, seeded()), MIXED(batch / 255, seeded()))


def test_all_other_changes_are_drawn_as_without_them() -> None:
    batch = images(30)
    changes = MIXED.draw(30, seeded())
    assert changes.surroundings is not None
    surrounded = changes.surroundings(batch, batch[changes.surroundings.donors])
    torch.testing.assert_close(changes(batch), MIXED.of_one_image.draw(30, seeded())(surrounded))


def test_of_one_image_has_none() -> None:
    assert MIXED.of_one_image == Augmentation(crop_padding=2, flip=True, jitter=0.4, zoom=0.3, tint=0.3)
    assert MIXED.of_one_image.draw(4, seeded()).surroundings is None
