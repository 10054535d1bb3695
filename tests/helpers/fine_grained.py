"""Small stand-ins for CUB-200-2011, FGVC-Aircraft and VGG Flower in the forms that people have."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from mela.sources import aircraft, cub, forms, vgg_flower
from mela.sources import open as opening
from mela.sources.check import recognised
from mela.sources.forms import Benchmark

SPLIT_OF = {
    "cub": {"001.Black_Bird": "train", "002.Red_Bird": "train", "003.Gull": "val", "004.Tern": "test"},
    "aircraft": {"A310": "train", "F-16A/B": "train", "Falcon 2000": "val", "747-100": "test"},
    "vgg_flower": {"001.rose": "train", "002.sweet pea": "train", "003.lily": "val", "004.daisy": "test"},
}
PER_CLASS, WIDTH, HEIGHT = 3, 40, 30
# of the bird or the aircraft: left, top, width and height, which other colours are around
BOX = (4, 5, 12, 12)
IMAGES = [(number, place) for number in range(PER_CLASS) for place in range(4)]


def shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the three have few classes and images."""
    for module in (forms, cub, aircraft, vgg_flower):
        monkeypatch.setattr(module, "split_of_classes", lambda name: SPLIT_OF.get(name, {}))
    small = {name: small_one(name) for name in SPLIT_OF}
    monkeypatch.setattr(recognised, "KNOWN", tuple(small.values()))
    monkeypatch.setattr(opening, "cub", partial(small_one, "cub"))
    monkeypatch.setattr(opening, "aircraft", partial(small_one, "aircraft"))
    monkeypatch.setattr(opening, "VGG_FLOWER", small["vgg_flower"])


def small_one(name: str, *, boxes: bool = False) -> Benchmark:
    if name == "cub":
        return replace(cub.cub(boxes=boxes), of_all=4 * PER_CLASS)
    if name == "aircraft":
        return replace(aircraft.aircraft(boxes=boxes), of_class=PER_CLASS)
    return replace(vgg_flower.VGG_FLOWER, of_all=4 * PER_CLASS)


def colour(place: int, number: int) -> tuple[int, int, int]:
    """The colour of an image, which tells the place of its class among all, and its number."""
    return 40 * place, 60 * number, 7


def draw(path: Path, place: int, number: int, *, banner: int = 0, boxed: bool = False) -> None:
    """An image of one colour, perhaps with a white banner below, perhaps with its colour in the box alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((HEIGHT + banner, WIDTH, 3), 255, dtype=np.uint8)
    left, top, width, height = BOX
    inside = (slice(top, top + height), slice(left, left + width)) if boxed else slice(0, HEIGHT)
    pixels[inside] = colour(place, number)
    # lossless behind any suffix
    Image.fromarray(pixels).save(path, format="PNG")


def write_cub(root: Path, home: str = "", *, boxed: bool = False) -> None:
    labels, lines = [*SPLIT_OF["cub"]], []
    for image, (number, place) in enumerate(IMAGES, 1):
        name = f"{labels[place]}/{labels[place][4:]}_{number:04d}.jpg"
        draw(root / home / "images" / name, place, number, boxed=boxed)
        lines.append(f"{image} {name}\n")
    (root / home / "images.txt").write_text("".join(lines))
    box = " ".join(f"{value:.1f}" for value in BOX)
    (root / home / "bounding_boxes.txt").write_text("".join(f"{image} {box}\n" for image in range(1, len(IMAGES) + 1)))


def write_aircraft(root: Path, home: str = "", *, boxed: bool = False) -> None:
    """Images of a class lie in all three lists, as they do in the real ones."""
    labels = [*SPLIT_OF["aircraft"]]
    lists: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    for number, place in IMAGES:
        name = f"{number}{place:06d}"
        draw(root / home / "images" / f"{name}.jpg", place, number, banner=20, boxed=boxed)
        [*lists.values()][number].append(f"{name} {labels[place]}\n")
    for part, lines in lists.items():
        (root / home / f"images_variant_{part}.txt").write_text("".join(lines))
    left, top, width, height = BOX
    box = f"{left + 1} {top + 1} {left + width} {top + height}"
    lines = [f"{number}{place:06d} {box}\n" for number, place in IMAGES]
    (root / home / "images_box.txt").write_text("".join(lines))


def write_flowers(root: Path, home: str = "") -> None:
    for image, (number, place) in enumerate(IMAGES, 1):
        draw(root / home / f"jpg/image_{image:05d}.jpg", place, number)
    savemat(root / home / "imagelabels.mat", {"labels": np.array([[place + 1 for _, place in IMAGES]], dtype=np.uint8)})


def write_folders(root: Path, name: str, folder: Callable[[str], str] = str, *, below: bool = False) -> None:
    for place, (label, split) in enumerate(SPLIT_OF[name].items()):
        for number in range(PER_CLASS):
            path = root / split / folder(label) if below else root / folder(label)
            draw(path / f"{number}.png", place, number)


Writer = Callable[[Path], None]
# those that `mela data check` recognises by their names
WRITERS: dict[str, tuple[str, Writer]] = {
    "cub": ("cub", write_cub),
    "cub, below": ("cub", partial(write_cub, home="CUB_200_2011")),
    "cub, folders": ("cub", partial(write_folders, name="cub")),
    "cub, folders of splits": ("cub", partial(write_folders, name="cub", below=True)),
    "cub, folders below": ("cub", lambda root: write_folders(root / "CUB_200_2011/images", "cub")),
    "aircraft": ("aircraft", write_aircraft),
    "aircraft, data": ("aircraft", partial(write_aircraft, home="data")),
    "aircraft, torchvision": ("aircraft", partial(write_aircraft, home="fgvc-aircraft-2013b/data")),
    "aircraft, folders": ("aircraft", partial(write_folders, name="aircraft", folder=lambda n: n.replace("/", "_"))),
    "vgg_flower": ("vgg_flower", write_flowers),
    "vgg_flower, torchvision": ("vgg_flower", partial(write_flowers, home="flowers-102")),
    "vgg_flower, folders": ("vgg_flower", partial(write_folders, name="vgg_flower")),
}
# folders that other data may have as well
BY_NAME: dict[str, tuple[str, Writer]] = {
    "cub, names": ("cub", partial(write_folders, name="cub", folder=lambda label: label[4:])),
    "aircraft, dashes": ("aircraft", partial(write_folders, name="aircraft", folder=lambda n: n.replace("/", "-"))),
    "vgg_flower, numbers": ("vgg_flower", partial(write_folders, name="vgg_flower", folder=lambda label: label[:3])),
    "vgg_flower, digits": (
        "vgg_flower",
        partial(write_folders, name="vgg_flower", folder=lambda label: str(int(label[:3])), below=True),
    ),
}
