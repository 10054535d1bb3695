"""Photographs that people sorted each for themselves, under names of all kinds."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

LONG = "x" * 200
# what people call the same thing; some names are hostile to spreadsheets, pages or terminals
WORDS = [
    ["pilz", "mushroom", "=1+1"],
    ["baum", "tree", '"><img src=x onerror=alert(2)>'],
    ["katze", "cat", "<script>alert(1)<"],
    ["hund", "\U0001f436", "\u202egnp.dog"],
    ["boot", "-1", LONG],
    ["ball", "two\nlines", "@SUM(A1)"],
]
HOSTILE = [
    "=1+1",
    "@SUM(A1)",
    "<script>alert(1)<",
    '"><img src=x onerror=alert(2)>',
    "\u202egnp.dog",
    "two\nlines",
    LONG,
]
# whose labels no task can be learned from: the only label of a person, and a label of one image
REST_LABELS = {("lone", "pilz"): (0, 4), ("anna", "single"): (3, 1)}
SMALL = {"side": 24, "margin": 5, "dark": 50, "shift": 2, "thick": 4}
PEOPLE = ["anna", "ben", "=HYPERLINK(1)", "carla & <b>co", *(f"person {number}" for number in range(4, 26))]


def draw_people(root: Path) -> None:
    """Write ``root/<person>/<label>/<image>``: three of the six things each, four small images of each."""
    rng = np.random.default_rng(0)
    for number, person in enumerate(PEOPLE):
        for kind in rng.permutation(6)[:3].tolist():
            # every name occurs, and the first people have those that tests ask for
            label = WORDS[kind][number % 3]
            for drawing in range(4):
                draw(kind, root / person / label / f"{drawing}.png", rng, **SMALL)


def draw_alone(root: Path) -> None:
    """Add the labels of `REST_LABELS`."""
    rng = np.random.default_rng(1)
    for (person, label), (kind, count) in REST_LABELS.items():
        for drawing in range(count):
            draw(kind, root / person / label / f"{drawing}.png", rng, **SMALL)


def figure(
    kind: int,
    rng: np.random.Generator,
    *,
    side: int = 28,
    margin: int = 6,
    dark: int = 60,
    shift: int = 3,
    thick: int = 5,
) -> Image.Image:
    """Return a bright figure, one of six kinds, on a ground below `dark`, moved by at most `shift` pixels."""
    image = Image.new("L", (side, side), int(rng.integers(0, dark)))
    pen, (x, y) = ImageDraw.Draw(image), rng.integers(-shift, shift + 1, 2).tolist()
    bright, width = int(rng.integers(180, 255)), int(rng.integers(2, thick))
    low, high, middle = ((at + x, at + y) for at in (margin, side - margin, side // 2))
    if kind == 0:
        pen.ellipse((*low, *high), outline=bright, width=width)
    elif kind == 1:
        pen.line((low[0], middle[1], high[0], middle[1]), fill=bright, width=width)
    elif kind == 2:
        pen.line((*low, *high), fill=bright, width=width)
    elif kind == 3:
        pen.rectangle((*low, *high), fill=bright)
    elif kind == 4:
        pen.polygon([(middle[0], low[1]), high, (low[0], high[1])], fill=bright)
    else:
        pen.line((middle[0], low[1], middle[0], high[1]), fill=bright, width=width)
    return image


def draw(kind: int, path: Path, rng: np.random.Generator, **shape: int) -> None:
    """A bright figure on a dark ground, a little moved."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure(kind, rng, **shape).save(path)
