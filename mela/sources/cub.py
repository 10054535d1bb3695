"""Open CUB-200-2011 (Wah et al., 2011), split as by Meta-Dataset (Triantafillou et al., 2020).

There are 140 train, 30 val and 30 test classes of birds, with 41 to 60 images each.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from PIL import Image

from mela.errors import MelaError
from mela.sources.benchmarks import split_of_classes
from mela.sources.forms import Benchmark, Form, Opened, class_folders
from mela.sources.image_files import open_below
from mela.sources.image_lists import Box, boxes_of, cut_to_box, home_in, read_list, require_images

NAME = "cub"
HOMES = ("CUB_200_2011/",)
LIST, BOXES = "images.txt", "bounding_boxes.txt"


def cub(*, boxes: bool = False) -> Benchmark:
    """Describe CUB-200-2011; with `boxes`, images are cut to the square around their bird."""
    listed = Form(
        title=f"the folder images with {f'{LIST} and {BOXES}' if boxes else LIST}, as it is distributed",
        needed=partial(_needed, boxes=boxes),
        open=partial(_from_list, boxes=boxes),
        is_sure=_names_classes,
    )
    folders = class_folders(NAME, homes=(f"{HOMES[0]}images/", *HOMES, "images/"), names=_names)
    return Benchmark(
        name=NAME,
        title="CUB-200-2011",
        preset="mini_imagenet_cpu",
        # class folders alone do not say where the birds are
        forms=(listed,) if boxes else (listed, folders),
        of_all=11_788,
    )


def _names(label: str) -> tuple[str, ...]:
    return label, label.partition(".")[2]


def _needed(root: Path, *, boxes: bool) -> Iterator[str]:
    home = home_in(root, HOMES)
    yield from (f"{home}{name}" for name in (LIST, *([BOXES] if boxes else []), "images"))


def _from_list(root: Path, *, boxes: bool) -> Opened:
    home, split_of = home_in(root, HOMES), split_of_classes(NAME)
    number_of: dict[str, str] = {}
    sources_of: dict[str, list[str]] = {label: [] for label in split_of}
    for number, name in read_list(root / home / LIST).items():
        label = name.partition("/")[0]
        if label not in split_of:
            raise MelaError(
                f"{root / home / LIST}: expected images of the 200 classes of birds, got {name!r}; fetch it again"
            )
        source = f"{home}images/{name}"
        sources_of[label].append(source)
        number_of[source] = number
    require_images(root, number_of, by=LIST)
    if not boxes:
        return split_of, sources_of, partial(open_below, root)
    box_of = boxes_of(root / home / BOXES, number_of, _corners)

    def open_source(source: str) -> Image.Image:
        return cut_to_box(open_below(root, source), box_of[source], source)

    return split_of, sources_of, open_source


def _corners(left: float, top: float, width: float, height: float) -> Box:
    return left, top, left + width, top + height


def _names_classes(root: Path) -> bool:
    """Tell whether the list names a class; lists of other images may have the same name."""
    path = root / home_in(root, HOMES) / LIST
    return path.is_file() and any(label.encode() in path.read_bytes() for label in split_of_classes(NAME))


CUB = cub()
