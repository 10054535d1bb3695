"""Open FGVC-Aircraft (Maji et al., 2013), split as by Meta-Dataset (Triantafillou et al., 2020).

There are 70 train, 15 val and 15 test classes, which are variants of aircraft, with 100 images each.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from PIL import Image

from mela.errors import MelaError
from mela.sources.benchmarks import split_of_classes
from mela.sources.forms import Benchmark, Form, Opened, class_folders, has_half
from mela.sources.image_files import open_below
from mela.sources.image_lists import Box, boxes_of, cut_to_box, home_in, read_list, require_images

NAME = "aircraft"
HOMES = ("fgvc-aircraft-2013b/data/", "data/")
LISTS = tuple(f"images_variant_{part}.txt" for part in ("train", "val", "test"))
BOXES = "images_box.txt"
# rows at the bottom that name the photographer
BANNER = 20


def aircraft(*, boxes: bool = False) -> Benchmark:
    """Describe FGVC-Aircraft; with `boxes`, images are cut to the square around their aircraft."""
    needed = partial(_needed, boxes=boxes)
    listed = Form(
        title=f"the folder images with {', '.join(LISTS)}{f' and {BOXES}' if boxes else ''}, as it is distributed",
        needed=needed,
        open=partial(_from_lists, boxes=boxes),
        is_sure=has_half(needed),
    )
    return Benchmark(
        name=NAME,
        title="FGVC-Aircraft",
        preset="mini_imagenet_cpu",
        # class folders alone do not say where the aircraft are, nor whether the banner is cut off
        forms=(listed,) if boxes else (listed, class_folders(NAME, homes=("images/",), names=_names)),
        of_class=100,
    )


def _names(label: str) -> tuple[str, ...]:
    """Return what a folder can be called, which cannot have the slash of F-16A/B."""
    return tuple(dict.fromkeys(label.replace("/", other) for other in ("_", "-", "")))


def _needed(root: Path, *, boxes: bool) -> Iterator[str]:
    home = home_in(root, HOMES)
    yield from (f"{home}{name}" for name in (*LISTS, *([BOXES] if boxes else []), "images"))


def _from_lists(root: Path, *, boxes: bool) -> Opened:
    home, split_of = home_in(root, HOMES), split_of_classes(NAME)
    sources_of: dict[str, list[str]] = {label: [] for label in split_of}
    image_of: dict[str, str] = {}
    for name in LISTS:
        for image, label in read_list(root / home / name).items():
            if label not in split_of:
                raise MelaError(
                    f"{root / home / name}, image {image!r}: expected one of the 100 variants, got {label!r}; fetch it "
                    "again"
                )
            source = f"{home}images/{image}.jpg"
            sources_of[label].append(source)
            image_of[source] = image
    require_images(root, image_of, by=" or ".join(LISTS))
    box_of = boxes_of(root / home / BOXES, image_of, _corners) if boxes else {}

    def open_source(source: str) -> Image.Image:
        image = open_below(root, source)
        image = image.crop((0, 0, image.width, max(1, image.height - BANNER)))
        return cut_to_box(image, box_of[source], source) if boxes else image

    return split_of, sources_of, open_source


def _corners(left: float, top: float, right: float, bottom: float) -> Box:
    """Return a box whose first pixel is 0; that of the file is 1."""
    return left - 1, top - 1, right, bottom


AIRCRAFT = aircraft()
