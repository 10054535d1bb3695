"""Ink on paper: what each trait does, and that nothing else has a part in it."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from mela.data.array_types import Floats
from mela.sources.ink_on_paper import TRAITS, inked
from mela.sources.person_traits import GRID

# grey ink of no brightness on white paper, thin, upright, without a lamp
NEUTRAL = dict.fromkeys(TRAITS, 0) | {"paper brightness": GRID, "tilt": GRID // 2}


def drawing(size: tuple[int, int] = (40, 32)) -> Image.Image:
    """A white stroke on black."""
    image = Image.new("1", size)
    ImageDraw.Draw(image).line((20, 6, 20, 26), fill=1)
    return image


def shown(image: Image.Image, **traits: int) -> Floats:
    found = inked(image, list((NEUTRAL | {name.replace("_", " "): value for name, value in traits.items()}).values()))
    assert (found.mode, found.size) == ("RGB", image.size)
    return np.asarray(found, dtype=np.float64) / 255


def test_neutral_is_black_on_white():
    found = shown(drawing())
    strokes = np.asarray(drawing())
    assert (found[strokes] == 0).all()
    assert (found[~strokes] == 1).all()


def test_the_same_traits_give_the_same_bytes():
    traits = [100, 4000, 2000, 300, 1000, 4096, 4000, 500, 3000, 1234]
    assert inked(drawing(), traits).tobytes() == inked(drawing(), traits).tobytes()


def test_colours_are_those_of_their_traits_within_their_ranges():
    strokes = np.asarray(drawing())
    # a third of the way around is green
    hues = {"ink_hue": GRID // 3, "ink_saturation": GRID, "ink_brightness": GRID, "paper_saturation": GRID}
    found = shown(drawing(), **hues, paper_brightness=0)
    assert found[strokes] == pytest.approx(np.broadcast_to([0, 0.5, 0], (strokes.sum(), 3)), abs=0.01)
    assert found[~strokes] == pytest.approx(np.broadcast_to([0.7, 0.35, 0.35], ((~strokes).sum(), 3)), abs=0.01)


@pytest.mark.parametrize(("thickness", "width"), [(0, 1), (GRID // 2, 3), (GRID, 5)])
def test_thickness_is_in_pixels(thickness, width):
    assert (shown(drawing(), thickness=thickness)[16, :, 0] == 0).sum() == width


@pytest.mark.parametrize(("tilt", "degrees"), [(0, -20), (GRID, 20)])
def test_tilt_turns_the_drawing(tilt, degrees):
    dark = np.argwhere(shown(drawing(), tilt=tilt)[..., 0] < 0.3)
    slope = np.polyfit(dark[:, 0], dark[:, 1], 1)[0]
    assert np.degrees(np.arctan(slope)) == pytest.approx(degrees, abs=3)


@pytest.mark.parametrize(("direction", "axis", "brighter"), [(0, 1, 1), (GRID // 4, 0, 1), (GRID // 2, 1, -1)])
def test_light_falls_from_its_direction_and_overflows_nowhere(direction, axis, brighter):
    blank = Image.new("1", (40, 32))
    found = shown(blank, light=GRID, direction=direction)[..., 0]
    along = found.mean(axis=1 - axis)[::brighter]
    assert (np.diff(along) > 0).all()
    assert (along[0], along[-1]) == pytest.approx((0.25, 1), abs=0.01)
    assert np.ptp(found, axis=1 - axis).max() < 0.01
