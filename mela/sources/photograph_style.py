"""Render a photograph in a style, as if another camera in another hand had taken it.

A style is six traits, each on the grid from 0 to 4,096 of `mela.sources.person_traits`. The image is a function of
(photograph, size, traits) alone, and the same bytes wherever Pillow and the JPEG library in it are the same.
"""

import io
from collections.abc import Sequence

from PIL import Image, ImageFilter

from mela.sources.person_traits import GRID

TRAITS = ("temperature", "tint", "exposure", "blur", "zoom", "compression")

_GAIN = 1.3
_GAMMA = 2.0
_BLUR = 1.2 / 32  # standard deviation at most, as a share of the side
_SPAN = 0.65  # of the side that is left where zoom is highest
_QUALITY = (95, 15)


def styled(photograph: Image.Image, size: int, traits: Sequence[int]) -> Image.Image:
    """Return a photograph in a style, as RGB of `size` x `size` pixels.

    Parameters
    ----------
    photograph : PIL.Image.Image
        Of any size and of a mode that Pillow converts to RGB.
    size : int
        Height and width of the result, in pixels.
    traits : sequence of int, length 6
        In the order of `TRAITS`:

        - temperature multiplies red by 1/1.3 to 1.3, and divides blue by the same,
        - tint divides green by 1/1.3 to 1.3; then all channels are divided by the largest gain, so that none overflows,
        - exposure raises all channels, from 0 to 1, to a power of 0.5 to 2,
        - blur has a standard deviation of 0 to 1.2 pixels at 32 pixels, and is in proportion to `size`,
        - zoom keeps a square in the middle, of 1 to 0.65 times the shorter side,
        - compression is by JPEG, of quality 95 to 15.
    """
    temperature, tint, exposure, blur, zoom, compression = (trait / GRID for trait in traits)
    side = min(photograph.size) * (1 - (1 - _SPAN) * zoom)
    left, top = ((whole - side) / 2 for whole in photograph.size)
    square = photograph.convert("RGB").resize(
        (size, size), Image.Resampling.LANCZOS, box=(left, top, left + side, top + side)
    )
    soft = square.filter(ImageFilter.GaussianBlur(_BLUR * size * blur))
    warmth, gamma = _GAIN ** (2 * temperature - 1), _GAMMA ** (2 * exposure - 1)
    gains = (warmth, _GAIN ** (1 - 2 * tint), 1 / warmth)
    lit = soft.point([_level(value, gain / max(gains), gamma) for gain in gains for value in range(256)])
    file = io.BytesIO()
    best, worst = _QUALITY
    lit.save(file, "JPEG", quality=round(best + (worst - best) * compression))
    with Image.open(file) as image:
        return image.convert("RGB")


def _level(value: int, gain: float, gamma: float) -> int:
    """Return the level, from 0 to 255, that takes the place of another."""
    return round(255 * gain * (value / 255) ** gamma)
