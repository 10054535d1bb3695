"""Draw characters of matplotlib's fonts with distortion: a data set that needs no download.

An image is a function of (seed, character, drawing, size) alone, and the same bytes on every machine with the same
Pillow, matplotlib and NumPy: random draws are integers, and the affine map is rounded to a grid on which Pillow's
bilinear sampling is exact in double precision, so that neither libm nor fused multiply-adds can flip a pixel.
"""

import math
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from mela.errors import MelaError
from mela.io.schemas import SPLITS, Split
from mela.sources.person_traits import GRID, PersonTraits
from mela.sources.source import ImageSource

# Scripts by split, under the first word of their characters' Unicode names. Chosen among some 940 letters, less those
# that are hard to read small or change their form from face to face, so that no two characters look alike in any of
# their faces: tests/sources/test_glyphs.py states the measure (the highest correlation over small rotations, shears,
# stretches and shifts) and its threshold. Annealing found the largest such set with more than 40 test characters, with
# Canadian syllabics to fill up, those in one piece first; from val, the least similar were kept.
CHARACTERS: dict[Split, dict[str, str]] = {
    "train": {
        "LATIN": "CKLNPVderszÐßæŋƕƛɮʓ",
        "DIGIT": "3467",
        "CYRILLIC": "ЂЊЕЙЛХЧЩЫадмтуфьюя",
        "ARABIC": "ءؤئةدسطعكمهو",
        "CANADIAN": "ᐁᐊᐟᐠᐢᒊᓁᓔᓬᓮᔧᕅᕊᕋᕍᕒᖁᖃᖋᖌᖍᖑᖤᖧᖨᖮᙯ",
    },
    "val": {
        "HEBREW": "אבהלצ",
        "LAO": "ຊດນມຮ",
        "NKO": "ߏߑߒߝߟ",
        "TIFINAGH": "ⴼⵋⵒⵢⵥ",
    },
    "test": {
        "GREEK": "ΛΞΣΨαμϘϞϡ",
        "ARMENIAN": "ԱԴԶԷԸԹԻԾՀՃՆՇՊՋՖչջ",
        "GEORGIAN": "ႢႦႧႪႮႰႵႺႼჂჄდლორუფჭჯ",
    },
}

# Italics are left out: shear makes the same difference, and a true italic is another letter (Cyrillic te turns into m).
_SANS = ("DejaVuSans", "DejaVuSans-Bold")
_SERIF = ("DejaVuSerif", "DejaVuSerif-Bold")
_MONO = ("DejaVuSansMono", "DejaVuSansMono-Bold")
_STIX = ("STIXGeneral", "STIXGeneralBol")
_FACES = {
    **dict.fromkeys(("LATIN", "DIGIT", "CYRILLIC", "GREEK"), _SANS + _SERIF + _MONO + _STIX),
    **dict.fromkeys(("CANADIAN", "HEBREW", "LAO", "NKO", "TIFINAGH"), _SANS),
    "ARABIC": _SANS + _MONO,
    "ARMENIAN": _SANS + _SERIF + _MONO,
    "GEORGIAN": _SANS + _SERIF,
}

SCRIPTS = {
    character: script
    for scripts in CHARACTERS.values()
    for script, characters in scripts.items()
    for character in characters
}

# Pixels by which strokes grow on each side of a stencil. They never shrink: hairlines and dots would vanish.
_GROWTH_REGULAR = (0, 1, 2)
_GROWTH_BOLD = (0, 1)

# The longer side of every stencil, in pixels: about three times that of the glyph in an image of 28 pixels.
_STENCIL_EXTENT = 72
_STENCIL_MARGIN = 12  # black around it, so that the widest blur ends before the edge
_PROBE_EM = 256
_SMALLEST_SIZE = 12

_ROTATION = math.radians(20)
_SHEAR = 0.3
_STRETCH = math.log(1.25)
_SPAN = (0.7, 1.0)
_BLUR = (0.5, 1.3)
_INK = (140, 255)
_NOISE = (10, 55)


def glyphs(*, images_per_class: int, size: int = 28, seed: int) -> ImageSource:
    """Draw printed characters, one class per character, with the scripts divided among the splits.

    80 classes of five scripts for training, 20 of four for validation, 45 of three for testing. Every image has its own
    face, stroke weight, rotation, shear, stretch, scale, position, blur, brightness and noise.

    Parameters
    ----------
    images_per_class : int, at least 1
        Drawings of each character. Drawing k is the same whatever their number.
    size : int, at least 12
        Height and width of the images, in pixels.
    seed : int, at least 0
        Another seed gives other drawings of the same characters.

    Returns
    -------
    ImageSource
        Grey-scale images (mode ``L``), bright on black; sources like ``"U+0416/007"``, classes like ``"U+0416"``.

    Raises
    ------
    MelaError
        If `images_per_class` or `size` is too small, or, on loading, if matplotlib's fonts are not installed.
    """
    if images_per_class < 1:
        raise MelaError(f"data.images_per_class: expected at least 1, got {images_per_class}")
    require_size(size)

    drawings = [
        (split, character, drawing)
        for split in SPLITS
        for character in "".join(CHARACTERS[split].values())
        for drawing in range(images_per_class)
    ]

    def load(image: int) -> Image.Image:
        _, character, drawing = drawings[image]
        return draw_glyph(character, size, np.random.default_rng([seed, ord(character), drawing]))

    return ImageSource(
        splits=[split for split, _, _ in drawings],
        sources=[f"U+{ord(character):04X}/{drawing:03d}" for _, character, drawing in drawings],
        classes=[f"U+{ord(character):04X}" for _, character, _ in drawings],
        load=load,
    )


def require_size(size: int) -> None:
    """Raise MelaError where glyphs would be too small to read."""
    if size < _SMALLEST_SIZE:
        raise MelaError(f"data.image_size: expected at least {_SMALLEST_SIZE} pixels, got {size}")


def draw_glyph(
    character: str, size: int, generator: np.random.Generator, person: PersonTraits | None = None
) -> Image.Image:
    """Return one distorted, noisy drawing of a character of `CHARACTERS`, by a person if one is given.

    Parameters
    ----------
    character : str
    size : int
        Height and width in pixels.
    generator : numpy.random.Generator
    person : PersonTraits, optional
        The person whose drawing it is; without one, all traits are drawn at random.
    """
    faces = _FACES[SCRIPTS[character]]
    typeface, weight, slant, brightness = person.draw(generator) if person else [None] * 4
    face = faces[_choice(len(faces), typeface, generator)]
    growths = _GROWTH_BOLD if "Bol" in face else _GROWTH_REGULAR
    stencil = _stencil(face, character, growths[_choice(len(growths), weight, generator)])

    draws = generator.integers(GRID + 1, size=9)
    rotation, shear, stretch, shift_x, shift_y, span, blur, ink, noise = (int(draw) / GRID for draw in draws)
    shear = shear if slant is None else slant / GRID
    ink = ink if brightness is None else brightness / GRID
    inverse, shrinkage = _inverse_affine(
        stencil.size,
        size,
        rotation=_between(-_ROTATION, _ROTATION, rotation),
        shear=_between(-_SHEAR, _SHEAR, shear),
        stretch=math.exp(_between(-_STRETCH, _STRETCH, stretch)),
        span=_between(*_SPAN, span),
        shift=(shift_x, shift_y),
    )
    # A blur as wide as the shrinkage stands in for the averaging that bilinear sampling leaves out.
    blurred = stencil.filter(ImageFilter.BoxBlur(round(2 * shrinkage * _between(*_BLUR, blur)) / 4))
    glyph = blurred.transform((size, size), Image.Transform.AFFINE, inverse, Image.Resampling.BILINEAR)

    amplitude = round(_between(*_NOISE, noise))
    grain = generator.integers(-amplitude, amplitude + 1, size=(size, size), dtype=np.int32)
    pixels = np.asarray(glyph, dtype=np.int32) * round(_between(*_INK, ink)) // 255 + grain
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def _choice(count: int, trait: int | None, generator: np.random.Generator) -> int:
    """Return which of `count` a trait stands for, or a random one where there is no trait."""
    return int(generator.integers(count)) if trait is None else trait * count // (GRID + 1)


def _between(low: float, high: float, fraction: float) -> float:
    return low + (high - low) * fraction


def _inverse_affine(
    stencil_size: tuple[int, int],
    size: int,
    *,
    rotation: float,
    shear: float,
    stretch: float,
    span: float,
    shift: tuple[float, float],
) -> tuple[tuple[float, ...], float]:
    """Return the map from image to stencil coordinates, on the grid, and the stencil pixels per image pixel.

    The distorted glyph's longer extent is the fraction `span` of the image without its outermost pixels; `shift`, from
    0 to 1 along x and y, moves the glyph through the room that is left, so that nothing is ever cut off.
    """
    cosine, sine = math.cos(rotation), math.sin(rotation)
    a, b = cosine * stretch, (cosine * shear - sine) / stretch
    c, d = sine * stretch, (sine * shear + cosine) / stretch
    width, height = (extent - 2 * _STENCIL_MARGIN for extent in stencil_size)
    extent_x, extent_y = abs(a) * width + abs(b) * height, abs(c) * width + abs(d) * height
    room = size - 2
    scale = span * room / max(extent_x, extent_y)
    centre_x = size / 2 + (shift[0] - 0.5) * (room - scale * extent_x)
    centre_y = size / 2 + (shift[1] - 0.5) * (room - scale * extent_y)

    # Rotation, shear and stretch all keep areas, so that the inverse divides by the scale alone.
    a, b, c, d = d / scale, -b / scale, -c / scale, a / scale
    offset_x = stencil_size[0] / 2 - a * centre_x - b * centre_y
    offset_y = stencil_size[1] / 2 - c * centre_x - d * centre_y
    return tuple(round(coefficient * GRID) / GRID for coefficient in (a, b, offset_x, c, d, offset_y)), 1 / scale


@cache
def _stencil(face: str, character: str, growth: int) -> Image.Image:
    """Draw the character large and undistorted, with a tight margin and strokes `growth` pixels wider on each side."""
    left, top, right, bottom = _font(face, _PROBE_EM).getbbox(character)
    font = _font(face, round(_PROBE_EM * _STENCIL_EXTENT / max(right - left, bottom - top)))
    left, top, right, bottom = (int(edge) for edge in font.getbbox(character))
    margin = _STENCIL_MARGIN
    stencil = Image.new("L", (right - left + 2 * margin, bottom - top + 2 * margin))
    ImageDraw.Draw(stencil).text((margin - left, margin - top), character, fill=255, font=font)
    stencil = stencil.filter(ImageFilter.MaxFilter(1 + 2 * growth))
    left, top, right, bottom = stencil.getbbox() or (0, 0, *stencil.size)
    return stencil.crop((left - margin, top - margin, right + margin, bottom + margin))


@cache
def _font(face: str, size: int) -> ImageFont.FreeTypeFont:
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{face}.ttf"
    try:
        # Pillow's own layout: the other one needs a library that some machines have and some have not.
        return ImageFont.truetype(path, size, layout_engine=ImageFont.Layout.BASIC)
    except OSError as error:
        raise MelaError(
            f"{path}: expected a font that matplotlib ships, got {error}; "
            "reinstall matplotlib from the package index, or choose another data set"
        ) from error
