"""Take a picture of a photograph, as a hand that is never quite still takes pictures of one object."""

import math

import numpy as np
from PIL import Image

_TURN = 5.0  # degrees to either side
# of the shorter side; a square of the larger one still lies inside when it is turned
_SPAN = (0.82, 0.92)
_LIGHT = 0.15


def snapshot(photograph: Image.Image, generator: np.random.Generator) -> Image.Image:
    """Return a square cut out of a photograph, turned and lit at random, at the photograph's own scale.

    Parameters
    ----------
    photograph : PIL.Image.Image
        Of any size.
    generator : Generator
        Draws an angle of up to 5 degrees to either side, a side of 0.82 to 0.92 of the shorter one, a place where the
        square does not leave the photograph, and brightness of 0.85 to 1.15.
    """
    turn, span, across, down, light = generator.random(5)
    angle, shorter = math.radians(_TURN * (2 * turn - 1)), min(photograph.size)
    side = shorter * (_SPAN[0] + (_SPAN[1] - _SPAN[0]) * span)
    cosine, sine = math.cos(angle), math.sin(angle)
    half = side * (cosine + abs(sine)) / 2
    x, y = (half + (whole - 2 * half) * place for whole, place in zip(photograph.size, (across, down), strict=True))
    # the middle of the result comes from (x, y)
    pixels = round(side)
    middle = pixels / 2
    turned = (cosine, sine, x - middle * (cosine + sine), -sine, cosine, y - middle * (cosine - sine))
    # black and white alone leave no shades between pixels
    shades = photograph.convert("L") if photograph.mode == "1" else photograph
    cut = shades.transform((pixels, pixels), Image.Transform.AFFINE, turned, Image.Resampling.BICUBIC)
    factor = 1 + _LIGHT * (2 * light - 1)
    return cut.point([min(255, round(level * factor)) for level in range(256)] * len(cut.getbands()))
