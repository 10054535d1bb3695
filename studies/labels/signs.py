"""Render photographs of traffic signs from a car, each in light, haze and shadow of its own.

The looks are an object's own, not a person's, and many kinds differ in a small pictogram only. So features that tell
objects apart need not tell kinds apart.
"""

from collections.abc import Iterator
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from mela.data.array_types import Floats

SIDE = 48
_FACE, _BACK = 160, (0, 0, 0, 0)
_FONT = Path(matplotlib.get_data_path()) / "fonts/ttf/DejaVuSans-Bold.ttf"
_RED, _WHITE, _BLUE, _BLACK = (190, 25, 30), (235, 235, 235), (25, 70, 170), (20, 20, 20)
_YELLOW, _GREY = (240, 190, 20), (150, 150, 150)
_PICTOGRAMS = {
    "limit": ["20", "30", "50", "60", "70", "80", "100", "120"],
    "warning": ["!", "↰", "↱", "≈", "∿", "⌂", "⚒", "⋮", "♟", "♞", "⚘", "❄", "♜", "⇅", "✚"],
    "order": ["→", "←", "↑", "↱", "↰", "↘", "↙", "↻"],
    "end": ["80", "", "≠", "♞"],
    "ban": ["", "♞", "♟♟", "♜♟"],
    "stop": ["STOP"],
    "give way": [""],
    "priority": [""],
    "no entry": [""],
}
SIGNS = [(form, pictogram) for form, pictograms in _PICTOGRAMS.items() for pictogram in pictograms]
KINDS = len(SIGNS)


def face(number: int) -> Image.Image:
    """Return a sign as it is painted, 160 pixels wide, on nothing."""
    form, pictogram = SIGNS[number]
    image = Image.new("RGBA", (_FACE, _FACE), _BACK)
    draw, middle = ImageDraw.Draw(image), _FACE / 2

    def circle(radius: float, colour: tuple[int, int, int]) -> None:
        draw.ellipse([middle - radius, middle - radius, middle + radius, middle + radius], fill=colour)

    def area(corners: list[tuple[float, float]], colour: tuple[int, int, int]) -> None:
        draw.polygon([(middle + x, middle + y) for x, y in corners], fill=colour)

    def write(size: int, colour: tuple[int, int, int], down: float = 0) -> None:
        font = ImageFont.truetype(str(_FONT), size)
        draw.text((middle, middle + down), pictogram, fill=colour, font=font, anchor="mm")

    if form in ("limit", "ban"):
        circle(74, _RED)
        circle(58, _WHITE)
        write(62 if form == "limit" and len(pictogram) == 2 else 70 if len(pictogram) < 2 else 45, _BLACK)
    elif form == "warning":
        area([(0, -70), (78, 64), (-78, 64)], _RED)
        area([(0, -42), (54, 50), (-54, 50)], _WHITE)
        write(60, _BLACK, 18)
    elif form == "order":
        circle(74, _BLUE)
        write(100, _WHITE)
    elif form == "end":
        circle(74, _BLACK)
        circle(70, _WHITE)
        write(60, _GREY)
        for shift in (-12, -4, 4, 12):
            draw.line([middle - 50 + shift, middle + 50 + shift, middle + 50 + shift, middle - 50 + shift], _BLACK, 3)
    elif form == "stop":
        angles = np.pi / 8 + np.arange(8) * np.pi / 4
        area([(74 * np.cos(angle), 74 * np.sin(angle)) for angle in angles.tolist()], _RED)
        write(44, _WHITE)
    elif form == "give way":
        area([(0, 72), (80, -64), (-80, -64)], _RED)
        area([(0, 42), (54, -48), (-54, -48)], _WHITE)
    elif form == "priority":
        area([(0, -78), (78, 0), (0, 78), (-78, 0)], _WHITE)
        area([(0, -54), (54, 0), (0, 54), (-54, 0)], _YELLOW)
    else:
        circle(74, _RED)
        draw.rectangle([middle - 50, middle - 14, middle + 50, middle + 14], fill=_WHITE)
    return image


def photographs(
    number: int, person: np.random.Generator, thing: np.random.Generator, count: int
) -> Iterator[Image.Image]:
    """Yield photographs of one sign, from far to near, of which nothing depends on the person.

    See `studies.labels.objects.Photographs`.
    """
    sign, back = face(number), _background(thing)
    gain, haze = np.exp(thing.normal(-0.35, 0.6)), abs(thing.normal(0, 0.12))
    gains, saturation = np.exp(thing.normal(0, 0.12, 3)), thing.uniform(0.35, 1)
    blur, turn, tilt = abs(thing.normal(0, 1.2)), thing.normal(0, 4), thing.normal(0, 0.12, 2)
    shadow = thing.uniform(-1, 1, 2) * (thing.random() < 0.4)
    far, near, aside = thing.uniform(14, 26), thing.uniform(28, 60), thing.normal(0, 0.04, 2)
    for step in range(count):
        side = round(far + (near - far) * (step / max(1, count - 1)) ** 1.5)
        image = _behind(back, thing)
        shown = _seen(sign, turn + thing.normal(0, 1), tilt + thing.normal(0, 0.02, 2), aside, thing)
        image.paste(shown, (0, 0), shown)
        pixels = np.asarray(image.resize((side, side), Image.Resampling.BOX), dtype=np.float64) / 255
        line = np.linspace(-1, 1, side)
        pixels = pixels * (1 - 0.35 * (np.add.outer(line * shadow[1], line * shadow[0]) > 0.1))[:, :, None]
        pixels = pixels.mean(axis=2, keepdims=True) * (1 - saturation) + pixels * saturation
        pixels = pixels * gain * np.exp(thing.normal(0, 0.08)) * gains * (1 - haze) + haze
        pixels = np.clip(pixels + thing.normal(0, 0.02, pixels.shape), 0, 1)
        photograph = Image.fromarray((255 * pixels).astype(np.uint8)).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        yield photograph.filter(ImageFilter.GaussianBlur(blur)) if blur > 0.3 else photograph


def _background(rng: np.random.Generator) -> Image.Image:
    """Return large patches of colours that are more or less grey."""
    colours = rng.uniform(20, 235, (*rng.integers(2, 6, 2), 3))
    strength = rng.uniform(0.2, 0.8)
    patches = colours * strength + colours.mean(axis=2, keepdims=True) * (1 - strength)
    how = Image.Resampling.BILINEAR if rng.random() < 0.5 else Image.Resampling.NEAREST
    return Image.fromarray(patches.astype(np.uint8)).resize((_FACE, _FACE), how)


def _behind(back: Image.Image, rng: np.random.Generator) -> Image.Image:
    """Return a background, turned and shifted by a little; what comes from beyond it is black."""
    moved = (1, 0, rng.normal(0, 8), 0, 1, rng.normal(0, 8))
    return back.rotate(rng.normal(0, 2)).transform(back.size, Image.Transform.AFFINE, moved, Image.Resampling.BILINEAR)


def _seen(sign: Image.Image, turn: float, tilt: Floats, aside: Floats, rng: np.random.Generator) -> Image.Image:
    """Return a sign as the camera sees it, before light and haze."""
    size, middle = 1 / rng.uniform(0.72, 0.82), _FACE / 2
    right, down = (aside + rng.normal(0, 0.02, 2)) * _FACE
    # from each pixel to where it comes from; the middle stays, but for the shift
    to = [
        (size, tilt[0], middle * (1 - size - tilt[0]) - right),
        (tilt[1], size, middle * (1 - size - tilt[1]) - down),
    ]
    turned = sign.rotate(turn, Image.Resampling.BICUBIC)
    return turned.transform(sign.size, Image.Transform.AFFINE, (*to[0], *to[1]), Image.Resampling.BICUBIC)
