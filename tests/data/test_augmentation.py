"""Augmentation against torchvision's transforms."""

import itertools

import pytest
import torch
from scipy import stats
from torch import Tensor
from torchvision.transforms.v2 import functional as reference

from mela.data.augmentation import NONE, Augmentation, blurred, recolour, turn

ALL = Augmentation(crop_padding=4, flip=True, jitter=0.4, rotation=20, zoom=0.4, tint=0.3, blur=0.5)
SIGNIFICANT = 1e-3
CHANGES = (reference.adjust_brightness, reference.adjust_contrast, reference.adjust_saturation)
CROP = Augmentation(crop_padding=2, flip=False, jitter=0)
FLIP = Augmentation(crop_padding=0, flip=True, jitter=0)
JITTER = Augmentation(crop_padding=0, flip=False, jitter=0.4)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int, channels: int, height: int = 8, width: int = 8) -> Tensor:
    return torch.rand(count, channels, height, width, generator=seeded(99))


@pytest.mark.parametrize("channels", [1, 3])
def test_crops_are_torchvisions_windows_all_alike_likely(channels: int) -> None:
    image = images(1, channels, 5, 7)
    padded = reference.pad(image[0], [2, 2, 2, 2])
    corners = itertools.product(range(5), repeat=2)
    windows = torch.stack([reference.crop(padded, top, left, 5, 7) for top, left in corners])

    crops = CROP(image.expand(2500, -1, -1, -1), seeded())

    matches = (crops[:, None] == windows).all((2, 3, 4))
    assert (matches.sum(1) == 1).all()
    assert stats.chisquare(matches.sum(0).numpy()).pvalue > SIGNIFICANT


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("change", range(3))
def test_colour_changes_are_torchvisions(change: int, channels: int) -> None:
    batch = images(9, channels)
    factors = torch.ones(3, 9)
    factors[change] = torch.linspace(0.2, 1.8, 9)
    changed = recolour(batch, factors, torch.arange(3).repeat(9, 1))
    for image, factor, result in zip(batch, factors[change].tolist(), changed, strict=True):
        torch.testing.assert_close(result, CHANGES[change](image, factor), rtol=0, atol=1e-6)


def test_changes_of_colour_follow_each_other_in_the_order_drawn() -> None:
    orders = torch.tensor(list(itertools.permutations(range(3))))
    batch = images(6, 3)
    factors = 0.6 + 0.8 * torch.rand(3, 6, generator=seeded())
    changed = recolour(batch, factors, orders)
    for row, order in enumerate(orders.tolist()):
        expected = batch[row]
        for change in order:
            expected = CHANGES[change](expected, factors[change, row].item())
        torch.testing.assert_close(changed[row], expected, rtol=0, atol=1e-6)


def test_factors_and_orders_are_drawn_evenly() -> None:
    drawn = ALL.draw(1200, seeded())
    assert drawn.factors is not None
    assert drawn.order is not None
    for factors in drawn.factors:
        assert stats.kstest(factors.numpy(), stats.uniform(0.6, 0.8).cdf).pvalue > SIGNIFICANT
    for one, two in itertools.combinations(drawn.factors, 2):
        assert abs(stats.pearsonr(one, two).statistic) < 4 / 1200**0.5
    orders = (drawn.order * torch.tensor([9, 3, 1])).sum(1).unique(return_counts=True)[1]
    assert len(orders) == 6
    assert stats.chisquare(orders.numpy()).pvalue > SIGNIFICANT


@pytest.mark.parametrize("channels", [1, 3])
def test_flips_about_half(channels: int) -> None:
    image = images(1, channels)
    batch = FLIP(image.expand(1000, -1, -1, -1), seeded())
    flipped = (batch == reference.horizontal_flip(image)).all((1, 2, 3))
    kept = (batch == image).all((1, 2, 3))
    assert torch.equal(flipped, ~kept)
    assert stats.binomtest(int(flipped.sum()), 1000, 0.5).pvalue > SIGNIFICANT


@pytest.mark.parametrize("channels", [1, 3])
def test_shape_range_and_input_are_kept(channels: int) -> None:
    batch = images(50, channels, 8, 12)
    batch[:5] = 1.0
    before = batch.clone()
    changed = ALL(batch, seeded())
    assert changed.shape == batch.shape
    assert changed.dtype == batch.dtype
    assert changed.min() >= 0
    assert changed.max() <= 1
    assert torch.equal(batch, before)


@pytest.mark.parametrize("change", [CROP, FLIP, JITTER, ALL])
def test_every_image_is_changed_on_its_own(change: Augmentation) -> None:
    image = images(1, 3)
    changed = change(image.expand(64, -1, -1, -1), seeded())
    assert len(changed.flatten(1).unique(dim=0)) > 1
    assert not torch.equal(changed, image.expand(64, -1, -1, -1))


def test_nothing_switched_on_changes_nothing() -> None:
    batch = images(4, 3)
    assert torch.equal(NONE(batch, seeded()), batch)


def test_the_generator_alone_decides() -> None:
    batch = images(16, 3)
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = ALL(batch, seeded(7))
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    generator = seeded(7)
    assert torch.equal(ALL(batch, generator), first)
    assert not torch.equal(ALL(batch, generator), first)
    assert not torch.equal(ALL(batch, seeded(8)), first)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_part_is_changed_as_it_is_among_the_others(channels: int) -> None:
    batch = images(20, channels)
    whole = ALL(batch, seeded())
    changes = ALL.draw(20, seeded())
    for part in (slice(0, 7), slice(7, 8), slice(8, 20), slice(3, 3)):
        assert torch.equal(changes[part](batch[part]), whole[part])


@pytest.mark.parametrize("change", [ALL, CROP, JITTER, NONE])
def test_bytes_and_floats_are_changed_alike(change: Augmentation) -> None:
    batch = torch.randint(0, 256, (12, 3, 8, 8), generator=seeded()).to(torch.uint8)
    changed = change(batch, seeded())
    assert changed.dtype == torch.float32
    assert torch.equal(changed, change(batch / 255, seeded()))


def test_rectangles_are_moved_like_squares() -> None:
    batch = torch.arange(2 * 3 * 5.0).view(1, 2, 3, 5).repeat(40, 1, 1, 1)
    drawn = Augmentation(crop_padding=1, flip=True, jitter=0).draw(40, seeded())
    assert drawn.corners is not None
    assert drawn.flipped is not None
    moved = drawn(batch)
    for row, (top, left, mirrored) in enumerate(zip(*drawn.corners.tolist(), drawn.flipped.tolist(), strict=True)):
        expected = reference.crop(reference.pad(batch[row], [1, 1, 1, 1]), top, left, 3, 5)
        expected = reference.horizontal_flip(expected) if mirrored else expected
        assert torch.equal(moved[row], expected)


def test_a_quarter_turn_is_torchvisions() -> None:
    batch = images(5, 3)
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]]).expand(5, -1, -1)
    torch.testing.assert_close(turn(batch, quarter), torch.rot90(batch, 1, (2, 3)), rtol=0, atol=1e-5)


def test_turning_is_torchvisions_affine_map() -> None:
    batch = images(30, 3, 16, 16)
    drawn = Augmentation(crop_padding=0, flip=False, jitter=0, rotation=40).draw(30, seeded())
    assert drawn.maps is not None
    angles = torch.atan2(drawn.maps[:, 1, 0], drawn.maps[:, 0, 0]).rad2deg()
    assert angles.abs().max() <= 40
    assert stats.kstest(angles.numpy(), stats.uniform(-40, 80).cdf).pvalue > SIGNIFICANT
    turned = drawn(batch)
    # without the corners, where torchvision has zeros
    rows, columns = torch.meshgrid(*2 * [torch.arange(16) - 7.5], indexing="ij")
    inside = rows**2 + columns**2 < 7**2
    for image, angle, result in zip(batch, angles.tolist(), turned, strict=True):
        expected = reference.rotate(image, angle, interpolation=reference.InterpolationMode.BILINEAR)
        torch.testing.assert_close(result[:, inside], expected[:, inside], rtol=0, atol=1e-4)


def test_images_grow_and_shrink_within_the_zoom() -> None:
    drawn = Augmentation(crop_padding=0, flip=False, jitter=0, zoom=0.5).draw(500, seeded())
    assert drawn.maps is not None
    assert (drawn.maps[:, 0, 1] == 0).all()
    sizes = 1 / torch.linalg.det(drawn.maps).sqrt()
    assert 1 / 1.5 <= sizes.min() < 0.7
    assert 1.4 < sizes.max() <= 1.5
    ratios = drawn.maps[:, 0, 0] / drawn.maps[:, 1, 1]
    assert 1.5**-0.5 <= ratios.min() < 0.85
    assert 1.2 < ratios.max() <= 1.5**0.5


def test_tints_change_channels_each_on_its_own_and_grey_images_not_at_all() -> None:
    tint = Augmentation(crop_padding=0, flip=False, jitter=0, tint=0.3)
    batch = torch.full((50, 3, 4, 4), 0.5)
    changed = tint(batch, seeded())
    assert (changed == changed[:, :, :1, :1]).all()
    factors = changed[:, :, 0, 0] / 0.5
    assert 0.7 <= factors.min() < 0.75
    assert 1.25 < factors.max() <= 1.3
    assert abs(stats.pearsonr(factors[:, 0], factors[:, 1]).statistic) < 4 / 50**0.5
    assert torch.equal(tint(images(5, 1), seeded()), images(5, 1))


def test_blur_spares_even_images_and_the_share_that_it_says() -> None:
    blur = Augmentation(crop_padding=0, flip=False, jitter=0, blur=0.25)
    torch.testing.assert_close(blurred(torch.full((1, 3, 5, 5), 0.3)), torch.full((1, 3, 5, 5), 0.3))
    batch = images(800, 1)
    same = (blur(batch, seeded()) == batch).all(dim=(1, 2, 3)).float().mean().item()
    assert same == pytest.approx(0.75, abs=0.06)
    assert blurred(batch).std() < 0.5 * batch.std()


def test_new_changes_leave_what_is_drawn_for_the_old_ones() -> None:
    old, new = Augmentation(crop_padding=4, flip=True, jitter=0.4).draw(20, seeded()), ALL.draw(20, seeded())
    for name in ("corners", "factors", "order", "flipped"):
        assert torch.equal(getattr(old, name), getattr(new, name))
