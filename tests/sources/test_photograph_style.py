"""Styles of photographs: what each trait does, and that nothing else has a part in it."""

import numpy as np
import pytest
from PIL import Image

from mela.data.array_types import Floats
from mela.sources.person_traits import GRID
from mela.sources.photograph_style import TRAITS, styled

# no tint, no change of exposure, no blur, no zoom, the best quality
NEUTRAL = dict(zip(TRAITS, (GRID // 2, GRID // 2, GRID // 2, 0, 0, 0), strict=True))


def photograph(size: tuple[int, int] = (40, 32)) -> Image.Image:
    """Coloured noise, blurred so that neighbours are alike as in photographs."""
    noise = np.random.default_rng(0).integers(0, 256, (size[1] // 8, size[0] // 8, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)


def rendered(image: Image.Image, size: int = 32, **traits: int) -> Floats:
    shown = styled(image, size, list((NEUTRAL | traits).values()))
    assert (shown.mode, shown.size) == ("RGB", (size, size))
    return np.asarray(shown, dtype=np.float64)


def grey(level: int) -> Image.Image:
    return Image.new("RGB", (32, 32), (level, level, level))


def test_a_neutral_style_shows_the_square_in_the_middle():
    whole = photograph()
    middle = np.asarray(whole, dtype=np.float64)[:, 4:36]
    assert np.abs(rendered(whole) - middle).mean() < 6


def test_the_same_traits_give_the_same_bytes():
    traits = [100, 4000, 2000, 300, 1000, 4096]
    assert styled(photograph(), 32, traits).tobytes() == styled(photograph(), 32, traits).tobytes()


@pytest.mark.parametrize(
    ("traits", "gains"),
    [
        ({"temperature": GRID}, (1, 1 / 1.3, 1 / 1.3**2)),
        ({"temperature": 0}, (1 / 1.3**2, 1 / 1.3, 1)),
        ({"tint": 0}, (1 / 1.3, 1, 1 / 1.3)),
        ({"tint": GRID}, (1, 1 / 1.3, 1)),
    ],
)
def test_white_balance_is_a_gain_of_each_channel_of_which_the_largest_is_1(traits, gains):
    for level in (80, 255):
        assert rendered(grey(level), **traits).mean(axis=(0, 1)) == pytest.approx(np.array(gains) * level, abs=2)


@pytest.mark.parametrize(("trait", "power"), [(0, 0.5), (GRID // 2, 1), (GRID, 2)])
def test_exposure_is_a_power(trait, power):
    shown = rendered(grey(64), exposure=trait)
    assert shown.mean() == pytest.approx(255 * (64 / 255) ** power, abs=1)


def test_zoom_keeps_the_middle():
    near = Image.new("RGB", (100, 100), (255, 0, 0))
    near.paste((0, 0, 255), (17, 17, 83, 83))
    assert rendered(near, zoom=GRID)[..., 0].max() < 60
    assert rendered(near)[0].mean(axis=0) == pytest.approx([255, 0, 0], abs=4)


@pytest.mark.parametrize("size", [32, 64])
def test_blur_is_as_wide_as_the_image_is_large(size):
    line = Image.new("RGB", (size, size))
    line.paste((255, 255, 255), (0, 0, size // 2, size))
    edge = np.diff(-rendered(line, size, blur=GRID)[size // 2, :, 0]).clip(0)
    place = np.arange(size - 1)
    spread = np.sqrt(np.average((place - np.average(place, weights=edge)) ** 2, weights=edge))
    assert spread == pytest.approx(1.2 * size / 32, rel=0.25)


def test_more_compression_takes_more_away():
    losses = [
        np.abs(rendered(photograph(), compression=trait) - rendered(photograph())).mean() for trait in (0, 2048, 4096)
    ]
    assert losses[0] < losses[1] < losses[2]


@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
def test_every_mode_that_sources_give_becomes_colour(mode):
    assert rendered(photograph().convert(mode)).shape == (32, 32, 3)
