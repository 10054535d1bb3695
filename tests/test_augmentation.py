"""Augmentation against torchvision's transforms."""

import itertools

import pytest
import torch
from scipy import stats
from torch import Tensor
from torchvision.transforms.v2 import functional as reference

from mela import augmentation
from mela.augmentation import Augmentation, color_jitter, random_crop

ALL = Augmentation(crop_padding=4, flip=True, jitter=0.4)
SIGNIFICANT = 1e-3


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(count: int, channels: int, height: int = 8, width: int = 8) -> Tensor:
    return torch.rand(count, channels, height, width, generator=seeded(99))


@pytest.mark.parametrize("channels", [1, 3])
def test_crops_are_torchvisions_windows_all_alike_likely(channels: int) -> None:
    image = images(1, channels, 5, 7)
    padded = reference.pad(image[0], [2, 2, 2, 2])
    windows = torch.stack(
        [reference.crop(padded, top, left, 5, 7) for top, left in itertools.product(range(5), repeat=2)]
    )

    crops = random_crop(image.expand(2500, -1, -1, -1), 2, seeded())

    matches = (crops[:, None] == windows).all((2, 3, 4))
    assert (matches.sum(1) == 1).all()
    assert stats.chisquare(matches.sum(0).numpy()).pvalue > SIGNIFICANT


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (augmentation._brightness, reference.adjust_brightness),
        (augmentation._contrast, reference.adjust_contrast),
        (augmentation._saturation, reference.adjust_saturation),
    ],
)
def test_colour_changes_are_torchvisions(function, expected, channels: int) -> None:  # type: ignore[no-untyped-def]
    batch = images(9, channels)
    factors = torch.linspace(0.2, 1.8, 9)
    changed = function(batch, factors.view(-1, 1, 1, 1))
    for image, factor, result in zip(batch, factors.tolist(), changed, strict=True):
        torch.testing.assert_close(result, expected(image, factor), rtol=0, atol=1e-6)


def test_jitter_is_torchvisions_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    factors = []

    def recorded(*arguments):  # type: ignore[no-untyped-def]
        factors.append(uniform(*arguments))
        return factors[-1]

    uniform = augmentation._uniform
    monkeypatch.setattr(augmentation, "_uniform", recorded)
    batch = images(1200, 3, 4, 4) * 0.9
    changed = color_jitter(batch, 0.4, seeded())

    changes = [reference.adjust_brightness, reference.adjust_contrast, reference.adjust_saturation]
    orders = list(itertools.permutations(range(3)))
    counts = [0] * len(orders)
    assert len(factors) == 3
    for row, image in enumerate(batch):
        fits = []
        for order in orders:
            expected = image
            for change in order:
                expected = changes[change](expected, factors[change][row].item())
            fits.append(torch.allclose(changed[row], expected, rtol=0, atol=5e-7))
        assert any(fits)
        if sum(fits) == 1:
            counts[fits.index(True)] += 1
    assert min(counts) > 30
    for drawn in factors:
        assert stats.kstest(drawn.flatten().numpy(), stats.uniform(0.6, 0.8).cdf).pvalue > SIGNIFICANT
    for one, two in itertools.combinations(factors, 2):
        assert abs(stats.pearsonr(one.flatten(), two.flatten()).statistic) < 4 / 1200**0.5


def test_brightness_factors_as_seen_in_the_result() -> None:
    """Contrast and saturation leave a plain grey image as it is."""
    changed = color_jitter(torch.full((1000, 1, 2, 2), 0.5), 0.4, seeded())
    factors = changed[:, 0, 0, 0] / 0.5
    assert stats.kstest(factors.numpy(), stats.uniform(0.6, 0.8).cdf).pvalue > SIGNIFICANT


def test_one_channel_has_no_saturation() -> None:
    batch = images(9, 1)
    factors = torch.linspace(0.6, 1.4, 9).view(-1, 1, 1, 1)
    assert torch.equal(augmentation._saturation(batch, factors), batch)


@pytest.mark.parametrize("channels", [1, 3])
def test_flips_about_half(channels: int) -> None:
    image = images(1, channels)
    batch = Augmentation(crop_padding=0, flip=True, jitter=0)(image.expand(1000, -1, -1, -1), seeded())
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


@pytest.mark.parametrize(
    "change",
    [
        Augmentation(crop_padding=2, flip=False, jitter=0),
        Augmentation(crop_padding=0, flip=True, jitter=0),
        Augmentation(crop_padding=0, flip=False, jitter=0.4),
        ALL,
    ],
)
def test_every_image_is_changed_on_its_own(change: Augmentation) -> None:
    image = images(1, 3)
    changed = change(image.expand(64, -1, -1, -1), seeded())
    assert len(changed.flatten(1).unique(dim=0)) > 1
    assert not torch.equal(changed, image.expand(64, -1, -1, -1))


def test_nothing_switched_on_changes_nothing() -> None:
    batch = images(4, 3)
    assert torch.equal(Augmentation(crop_padding=0, flip=False, jitter=0)(batch, seeded()), batch)


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
