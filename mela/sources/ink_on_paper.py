"""Show a drawing as ink on paper, as if another person had drawn it with their own pen, under their own lamp.

The image is a function of the drawing and of ten traits alone, each on the grid from 0 to 4,096 of
`mela.sources.person_traits`.
"""

import math
from collections.abc import Sequence
from colorsys import hsv_to_rgb

import numpy as np
from PIL import Image, ImageFilter

from mela.data.array_types import Floats
from mela.sources.person_traits import GRID

TRAITS = (
    *("ink hue", "ink saturation", "ink brightness"),
    *("paper hue", "paper saturation", "paper brightness"),
    *("thickness", "tilt", "light", "direction"),
)

# of saturation and of brightness, from and to
_INK = ((0.2, 1.0), (0.0, 0.5))
_PAPER = ((0.0, 0.5), (0.7, 1.0))
_THICKER = 2  # pixels at most
_TILT = 20.0  # degrees to either side
_LIGHT = 0.6


def inked(drawing: Image.Image, traits: Sequence[int]) -> Image.Image:
    """Return a drawing as RGB, of the same size.

    Parameters
    ----------
    drawing : PIL.Image.Image
        White strokes on black, of any size.
    traits : sequence of int, length 10
        In the order of `TRAITS`:

        - ink is of any hue, with a saturation of 0.2 to 1 and a brightness of 0 to 0.5,
        - paper is of any hue, with a saturation of 0 to 0.5 and a brightness of 0.7 to 1,
        - thickness adds 0, 1 or 2 pixels to either side of a stroke,
        - tilt turns the drawing by up to 20 degrees to either side,
        - light falls from one direction, in which brightness rises by up to 60% from the middle to the edge, and falls
          as much on the other side; then all is divided by the largest factor, so that nothing overflows.
    """
    *colours, thickness, tilt, light, direction = (trait / GRID for trait in traits)
    ink, paper = _colour(colours[:3], _INK), _colour(colours[3:], _PAPER)
    grey = drawing.convert("L")
    for _ in range(round(_THICKER * thickness)):
        grey = grey.filter(ImageFilter.MaxFilter(3))
    turned = grey.rotate(_TILT * (2 * tilt - 1), Image.Resampling.BICUBIC)
    covered = np.asarray(turned, dtype=np.float64)[..., None] / 255
    down, across = np.meshgrid(*(np.linspace(-1, 1, side) for side in covered.shape[:2]), indexing="ij")
    angle, strength = 2 * math.pi * direction, _LIGHT * light
    lit = 1 + strength * (math.cos(angle) * across + math.sin(angle) * down)
    colour = (paper + (ink - paper) * covered) * np.maximum(lit / lit.max(), 0)[..., None]
    return Image.fromarray(np.rint(255 * colour).astype(np.uint8))


def _colour(traits: Sequence[float], ranges: Sequence[tuple[float, float]]) -> Floats:
    """Return red, green and blue, from 0 to 1, by hue, saturation and brightness within their ranges."""
    hue, *others = traits
    saturation, brightness = (low + (high - low) * trait for (low, high), trait in zip(ranges, others, strict=True))
    return np.array(hsv_to_rgb(hue, saturation, brightness))
