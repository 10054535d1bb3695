"""The built-in glyphs: no look-alikes, no missing letters, the same bytes everywhere."""

import hashlib
import itertools
import math
import unicodedata
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.ft2font import FT2Font
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from mela.errors import MelaError
from mela.io.schemas import SPLITS
from mela.sources.glyphs import _FACES, CHARACTERS, _stencil, glyphs
from mela.sources.source import ImageSource

# The highest similarity allowed of two characters anywhere in the tables. Pairs as close as n and h (0.93) or E and F
# (0.95) lie above it, C and G (0.89) or P and R (0.89) below.
THRESHOLD = 0.92

SIDE = 16
WARPS = list(itertools.product((-15, 0, 15), (0.88, 1, 1.14), (-0.25, 0, 0.25)))
SHIFTS = ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 0))


def script_of(character: str) -> str:
    return unicodedata.name(character).split()[0]


def all_characters() -> list[str]:
    return [character for split in SPLITS for characters in CHARACTERS[split].values() for character in characters]


def pixels(source: ImageSource, image: int) -> bytes:
    return source.load(image).tobytes()


def warped(image: Image.Image, degrees: float, stretch: float, shear: float) -> Image.Image:
    """`image` rotated, stretched (width by height) and sheared about its centre, in a frame with room to spare."""
    angle = math.radians(degrees)
    rotation = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    inverse = np.linalg.inv(rotation @ np.array([[1, shear], [0, 1]]) @ np.diag([stretch, 1 / stretch]))
    frame = 128
    offset = np.array(image.size) / 2 - inverse @ np.full(2, frame / 2)
    coefficients = np.column_stack([inverse, offset]).ravel().tolist()
    return image.transform((frame, frame), Image.Transform.AFFINE, coefficients, Image.Resampling.BILINEAR)


def boxed(image: Image.Image) -> Image.Image:
    """The ink of `image`, scaled to touch a box of fixed size on two sides, so that size and place no longer count."""
    ink = image.crop(image.point(lambda value: 255 * (value > 100)).getbbox())
    scale = (SIDE - 4) / max(ink.size)
    width, height = (max(1, round(extent * scale)) for extent in ink.size)
    box = Image.new("L", (SIDE, SIDE))
    box.paste(ink.resize((width, height), Image.Resampling.BOX), ((SIDE - width) // 2, (SIDE - height) // 2))
    return box.filter(ImageFilter.GaussianBlur(0.7))


def standardised(images: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of mean 0 and length 1, of which products are correlations. Shape (n, SIDE, SIDE) to (n, SIDE * SIDE)."""
    rows = images.reshape(len(images), -1)
    rows = rows - rows.mean(axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def similarities(characters: list[str]) -> NDArray[np.float32]:
    """The highest correlation of two characters over all their faces, one of them warped and shifted; shape (n, n)."""
    plain, variants, owners = [], [], []
    for owner, character in enumerate(characters):
        stencils = [_stencil(face, character, 0) for face in _FACES[script_of(character)]]
        owners += [owner] * len(stencils)
        plain.append(np.array([boxed(stencil) for stencil in stencils], dtype=np.float32))
        warps = np.array([boxed(warped(stencil, *warp)) for stencil in stencils for warp in WARPS], dtype=np.float32)
        shifts = [np.roll(warps, shift, axis=(1, 2)) for shift in SHIFTS]
        variants.append(standardised(np.concatenate(shifts)))
    references = standardised(np.concatenate(plain)).T
    first_face = np.searchsorted(owners, range(len(characters)))
    highest = [np.maximum.reduceat((rows @ references).max(axis=0), first_face) for rows in variants]
    return np.maximum(highest, np.transpose(highest))


@pytest.mark.slow
def test_no_two_characters_look_alike_in_any_split():
    """Slow (seconds): every character in every face, in 135 poses, is compared with all others."""
    characters = all_characters()
    similarity = similarities(characters)
    alike = [
        f"{characters[i]} {characters[j]}: {similarity[i, j]:.3f}"
        for i, j in itertools.combinations(range(len(characters)), 2)
        if similarity[i, j] > THRESHOLD
    ]
    assert not alike


@pytest.mark.parametrize(
    "pair",
    [
        "A\N{GREEK CAPITAL LETTER ALPHA}",
        "A\N{CYRILLIC CAPITAL LETTER A}",
        "o\N{GREEK SMALL LETTER OMICRON}",
        "cC",
        "sS",
        "b\N{CYRILLIC SMALL LETTER SOFT SIGN}",
        "\N{CANADIAN SYLLABICS PI}\N{GREEK CAPITAL LETTER LAMDA}",
    ],
)
def test_known_look_alikes_exceed_the_threshold(pair):
    assert similarities(list(pair))[0, 1] > THRESHOLD


def test_the_same_letter_in_another_pose_is_alike_and_another_letter_is_not():
    similarity = similarities(list("KsL"))
    assert np.diag(similarity) == pytest.approx(1, abs=1e-5)
    assert similarity[~np.eye(3, dtype=bool)].max() < THRESHOLD


def test_every_face_has_every_character():
    for script, characters in itertools.chain.from_iterable(CHARACTERS[split].items() for split in SPLITS):
        for face in _FACES[script]:
            path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{face}.ttf"
            missing = {ord(character) for character in characters} - FT2Font(str(path)).get_charmap().keys()
            assert not missing, f"{face} lacks {sorted(missing)}"


def test_splits_differ_in_script():
    scripts = {split: {script_of(character) for character in "".join(CHARACTERS[split].values())} for split in SPLITS}
    for split in SPLITS:
        assert scripts[split] == CHARACTERS[split].keys()
    for one, other in itertools.combinations(SPLITS, 2):
        assert scripts[one].isdisjoint(scripts[other])
    assert len(set(all_characters())) == len(all_characters())


def test_counts():
    source = glyphs(images_per_class=3, seed=0)
    assert source.classes is not None
    assert source.tasks is None
    classes = {split: [c for c, s in zip(source.classes, source.splits, strict=True) if s == split] for split in SPLITS}
    assert {split: len(set(names)) for split, names in classes.items()} == {"train": 80, "val": 20, "test": 45}
    assert all(names.count(name) == 3 for names in classes.values() for name in names)
    assert len(source) == len(set(source.sources)) == 3 * 145
    assert [source.sources[i] for i in (0, 1, 3)] == ["U+0043/000", "U+0043/001", "U+004B/000"]
    assert source.classes[3] == "U+004B"


@pytest.mark.parametrize("size", [12, 28, 84])
def test_images_are_grey_bright_on_black_and_of_the_size_asked_for(size):
    source = glyphs(images_per_class=1, size=size, seed=0)
    for image in range(0, len(source), 10):
        loaded = source.load(image)
        assert (loaded.mode, loaded.size) == ("L", (size, size))
        assert np.median(np.asarray(loaded)) < 64 < np.asarray(loaded).max()


def test_no_drawing_is_cut_off():
    source = glyphs(images_per_class=8, size=56, seed=1)
    border = np.ones((56, 56), dtype=bool)
    border[1:-1, 1:-1] = False
    brightest = max(np.asarray(source.load(image))[border].mean() for image in range(len(source)))
    # Noise of at most 55 either way, of which the negative half is clipped to 0, has a mean of at most about 14.
    assert brightest < 25


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    first, again, other = (glyphs(images_per_class=2, seed=seed) for seed in (5, 5, 6))
    for image in range(0, len(first), 17):
        assert pixels(first, image) == pixels(again, image)
        assert pixels(first, image) != pixels(other, image)


def test_drawings_of_a_character_differ():
    source = glyphs(images_per_class=20, seed=0)
    assert len({pixels(source, image) for image in range(20)}) == 20


def test_a_drawing_does_not_depend_on_how_many_there_are():
    few, many = glyphs(images_per_class=2, seed=3), glyphs(images_per_class=5, seed=3)
    for image in range(0, len(few), 13):
        twin = many.sources.index(few.sources[image])
        assert pixels(few, image) == pixels(many, twin)
        assert few.splits[image] == many.splits[twin]


def test_golden_bytes():
    """Holds for the pinned versions of Pillow, matplotlib and NumPy; a new digest means that every result changes."""
    digest = hashlib.sha256()
    source = glyphs(images_per_class=2, seed=0)
    for image in range(0, len(source), 5):
        digest.update(pixels(source, image))
    assert digest.hexdigest() == "9c16189c05b01373d4100383c202714a66a96f59d3b171b883b42004f1296ca2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"images_per_class": 0}, "data.images_per_class: expected at least 1, got 0"),
        ({"images_per_class": 1, "size": 11}, "data.image_size: expected at least 12 pixels, got 11"),
    ],
)
def test_invalid_arguments_name_the_key(arguments, message):
    with pytest.raises(MelaError) as error:
        glyphs(**arguments, seed=0)
    assert str(error.value) == message


def test_missing_fonts_are_named(monkeypatch, tmp_path):
    from mela.sources import glyphs as module

    monkeypatch.setattr(module.matplotlib, "get_data_path", lambda: str(tmp_path))
    module._font.cache_clear()
    module._stencil.cache_clear()
    with pytest.raises(MelaError, match=r"^[^\n]*\.ttf: expected a font [^\n]* reinstall matplotlib[^\n]*$"):
        glyphs(images_per_class=1, seed=0).load(100)
