"""Open miniImageNet (Vinyals et al., 2016), split as by Ravi and Larochelle (2017), in the forms that people have.

There are 64 train, 16 val and 20 test classes, named by WordNet id, of 600 images each.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from mela.data.array_types import Images
from mela.errors import MelaError
from mela.io.schemas import SPLITS
from mela.io.text_tables import parse_csv, read_text
from mela.sources.array_pickles import image_array, read_pickle, whole_numbers
from mela.sources.benchmarks import split_of_classes
from mela.sources.forms import Benchmark, Form, Opened, class_folders
from mela.sources.image_files import list_images, open_below

NAME = "mini_imagenet"
CACHE = "mini-imagenet-cache-{}.pkl"
PICKLES = {
    "train": "miniImageNet_category_split_train_phase_train.pickle",
    "val": "miniImageNet_category_split_val.pickle",
    "test": "miniImageNet_category_split_test.pickle",
}


def _tables(root: Path) -> Iterator[str]:
    del root
    yield from (f"{split}.csv" for split in SPLITS)
    yield "images"


def _from_tables(root: Path) -> Opened:
    split_of = split_of_classes(NAME)
    # files may have been converted to another format
    there = {Path(name).stem: name for name in list_images(root / "images")}
    sources_of: dict[str, list[str]] = {label: [] for label in split_of}
    missing = []
    for split in SPLITS:
        path = root / f"{split}.csv"
        table = parse_csv(read_text(path, "data.root"), where=str(path), required=("filename", "label"))
        for line, name, label in zip(table.lines, table.columns["filename"], table.columns["label"], strict=True):
            if split_of.get(label) != split:
                raise MelaError(
                    f"{path}, line {line}: expected a class of the published split {split}, got {label!r}; fetch the "
                    "tables of Ravi and Larochelle"
                )
            found = there.get(Path(name).stem)
            if found is None:
                missing.append(name)
            else:
                sources_of[label].append(f"images/{found}")
    if missing:
        raise MelaError(
            f"{root / 'images'}: expected the images that train.csv, val.csv and test.csv name, but {len(missing)} are "
            f"missing, such as {missing[0]!r}; add them"
        )
    return split_of, sources_of, partial(open_below, root)


def _name_classes(root: Path) -> bool:
    """Tell whether a table names a published class; tables of other images may have the same names."""
    texts = [(root / f"{split}.csv").read_bytes() for split in SPLITS if (root / f"{split}.csv").is_file()]
    return any(label.encode() in text for text in texts for label in split_of_classes(NAME))


def _caches(root: Path) -> Iterator[str]:
    del root
    yield from map(CACHE.format, SPLITS)


def _from_caches(root: Path) -> Opened:
    def read(split: str, path: Path) -> tuple[Any, Any]:
        del split
        found = read_pickle(path, "image_data", "class_dict")
        return found["image_data"], found["class_dict"]

    return _from_arrays({split: root / CACHE.format(split) for split in SPLITS}, read)


def _pickles(root: Path) -> Iterator[str]:
    del root
    yield from PICKLES.values()


def _from_pickles(root: Path) -> Opened:
    def read(split: str, path: Path) -> tuple[Any, Any]:
        found = read_pickle(path, "data", "labels")
        numbers, names = whole_numbers(found["labels"], str(path), "labels"), found.get("catname2label")
        if names is None:
            # copies without names are about
            names = {_numbered(split, number): number for number in np.unique(numbers).tolist()}
        if not isinstance(names, dict):
            raise MelaError(
                f"{path}: expected 'catname2label' to be numbers by name, got {type(names).__name__}; fetch it again"
            )
        return found["data"], {name: np.flatnonzero(numbers == number) for name, number in names.items()}

    return _from_arrays({split: root / name for split, name in PICKLES.items()}, read)


def _numbered(split: str, number: int) -> str:
    return f"{split} {number:02d}"


def _from_arrays(files: Mapping[str, Path], read: Callable[[str, Path], tuple[Any, Any]]) -> Opened:
    """Return what files of arrays have: for each split its images (n, h, w, 3), and the rows of each class."""
    published = split_of_classes(NAME)
    arrays: dict[str, Images] = {}
    split_of: dict[str, str] = {}
    sources_of: dict[str, list[str]] = {}
    place_of: dict[str, tuple[str, int]] = {}
    for split, path in files.items():
        images, rows_of = read(split, path)
        arrays[split] = image_array(images, str(path))
        if not isinstance(rows_of, dict):
            raise MelaError(f"{path}: expected rows by class, got {type(rows_of).__name__}; fetch it again")
        names = {label for label, own in published.items() if own == split}
        numbered = {_numbered(split, number) for number in range(len(published))}
        if set(rows_of) != names and not (len(rows_of) == len(names) and numbered.issuperset(rows_of)):
            others = [label for label in rows_of if label not in names]
            raise MelaError(
                f"{path}: expected the {len(names)} classes of the published split {split}, got {len(rows_of)}"
                f"{f', among them {others[0]!r}' if others else ''}; fetch it again"
            )
        for label, rows in sorted(rows_of.items()):
            split_of[label], sources_of[label] = split, []
            for number, row in enumerate(whole_numbers(rows, str(path), f"rows of class {label!r}").tolist()):
                if not 0 <= row < len(images):
                    raise MelaError(
                        f"{path}: expected rows 0 to {len(images) - 1} for class {label!r}, got {row}; fetch it again"
                    )
                source = f"{split}/{label}/{number:03d}"
                sources_of[label].append(source)
                place_of[source] = (split, row)

    def open_source(source: str) -> Image.Image:
        split, row = place_of[source]
        return Image.fromarray(arrays[split][row])

    return split_of, sources_of, open_source


MINI_IMAGENET = Benchmark(
    name=NAME,
    title="miniImageNet",
    preset=f"{NAME}_cpu",
    forms=(
        Form(
            title="the folder images with train.csv, val.csv and test.csv",
            needed=_tables,
            open=_from_tables,
            is_sure=_name_classes,
        ),
        Form(title="mini-imagenet-cache-train.pkl, -val.pkl and -test.pkl", needed=_caches, open=_from_caches),
        Form(title=", ".join(PICKLES.values()), needed=_pickles, open=_from_pickles),
        class_folders(NAME),
    ),
    of_class=600,
)
