"""Open VGG Flower (Nilsback and Zisserman, 2008), split as by Meta-Dataset (Triantafillou et al., 2020).

There are 71 train, 15 val and 16 test classes of flowers, with 40 to 258 images each.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from mela.errors import MelaError, one_line, raise_if_machine
from mela.sources.array_pickles import whole_numbers
from mela.sources.benchmarks import split_of_classes
from mela.sources.forms import Benchmark, Form, Opened, class_folders
from mela.sources.image_files import open_below
from mela.sources.image_lists import home_in, require_images

NAME = "vgg_flower"
HOMES = ("flowers-102/",)
LABELS = "imagelabels.mat"


def _names(label: str) -> tuple[str, ...]:
    """Return what a class folder can be called: its number and its name, or the number alone."""
    number = label.partition(".")[0]
    return label, number, str(int(number))


def _needed(root: Path) -> Iterator[str]:
    home = home_in(root, HOMES)
    yield from (f"{home}{name}" for name in (LABELS, "jpg"))


def _from_labels(root: Path) -> Opened:
    home, split_of = home_in(root, HOMES), split_of_classes(NAME)
    path = root / home / LABELS
    try:
        found = loadmat(path, variable_names=("labels",))["labels"]
    # what a damaged file raises is anything
    except Exception as error:
        raise_if_machine(error, path)
        raise MelaError(
            f"{path}: expected a file of MATLAB with 'labels', got {one_line(error)}; fetch it again"
        ) from None
    numbers = whole_numbers(np.ravel(found), str(path), "labels")
    label_of = {int(label.partition(".")[0]): label for label in split_of}
    sources_of: dict[str, list[str]] = {label: [] for label in split_of}
    for image, number in enumerate(numbers.tolist(), 1):
        if number not in label_of:
            raise MelaError(
                f"{path}: expected numbers of classes from 1 to {len(label_of)}, got {number} for image {image}; fetch "
                "it again"
            )
        sources_of[label_of[number]].append(f"{home}jpg/image_{image:05d}.jpg")
    require_images(root, (source for found in sources_of.values() for source in found), by=LABELS)
    return split_of, sources_of, partial(open_below, root)


VGG_FLOWER = Benchmark(
    name=NAME,
    title="VGG Flower",
    preset="mini_imagenet_cpu",
    forms=(
        Form(
            title=f"the folder jpg with {LABELS}, as it is distributed",
            needed=_needed,
            open=_from_labels,
            is_sure=lambda root: (root / home_in(root, HOMES) / LABELS).is_file(),
        ),
        class_folders(NAME, homes=("jpg/",), names=_names),
    ),
    of_all=8_189,
)
