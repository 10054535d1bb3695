"""Open miniImageNet (Vinyals et al., 2016), split as by Ravi and Larochelle (2017), in the forms that people have.

There are 64 train, 16 val and 20 test classes, named by WordNet id, of 600 images each.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from mela.data.array_types import Images
from mela.errors import MelaError
from mela.io.schemas import SPLITS
from mela.io.text_tables import parse_csv, read_text
from mela.sources.array_pickles import read_pickle
from mela.sources.benchmarks import source_of_classes, split_of_classes
from mela.sources.image_files import list_images, open_below, require_folder
from mela.sources.source import ImageSource

NAME, TITLE = "mini_imagenet", "miniImageNet"
IMAGES_PER_CLASS = 600
CACHE = "mini-imagenet-cache-{}.pkl"
PICKLES = {
    "train": "miniImageNet_category_split_train_phase_train.pickle",
    "val": "miniImageNet_category_split_val.pickle",
    "test": "miniImageNet_category_split_test.pickle",
}
Opened = tuple[Mapping[str, str], dict[str, list[str]], Callable[[str], Image.Image]]


@dataclass(frozen=True)
class Form:
    """Describe a form in which people have a benchmark.

    Attributes
    ----------
    title : str
        In words.
    needed : callable
        Takes the folder, and yields the files and folders without which it is not this form.
    open : callable
        Takes the folder; returns the split and the images of every class, and what opens an image.
    """

    title: str
    needed: Callable[[Path], Iterator[str]]
    open: Callable[[Path], Opened]


def mini_imagenet(root: Path) -> ImageSource:
    """Open miniImageNet.

    Parameters
    ----------
    root : Path
        Holds one of `FORMS`: ``images`` with ``train.csv``, ``val.csv`` and ``test.csv`` (filename, label); a folder
        for each class, directly or in ``train``, ``val`` and ``test``; or one of the two caches of arrays.

    Raises
    ------
    MelaError
        There is none of them, or it is not whole.
    """
    require_folder(root, "data.root")
    form = form_of(root)
    if form is None:
        titles = "; or ".join(one.title for one in FORMS)
        raise MelaError(
            f"data.root: expected miniImageNet in {root}, which is {titles}; got none of them; set data.root to its "
            "folder"
        )
    if missing := [name for name in form.needed(root) if not (root / name).exists()]:
        raise MelaError(
            f"data.root: expected {form.title} in {root}, got no {', '.join(missing[:3])}"
            f"{f' ({len(missing)} are missing)' if len(missing) > 3 else ''}; add what is missing"
        )
    split_of, sources_of, open_source = form.open(root)
    where = f"{root}, class {{!r}}"
    return source_of_classes(split_of, sources_of, open_source, where=where, expected=IMAGES_PER_CLASS)


def form_of(root: Path) -> Form | None:
    """Return the form of miniImageNet that a folder has, at least in part; None if it has none."""
    return next((form for form in FORMS if any((root / name).exists() for name in form.needed(root))), None)


def recognised(root: Path) -> Form | None:
    """Return the form of miniImageNet that a folder has without doubt, though it need not be whole.

    Tables have to name a published class, and half of the class folders have to be there.
    """
    form = form_of(root)
    if form is None:
        return None
    known = split_of_classes(NAME)
    if form.open is _from_tables:
        texts = [(root / f"{split}.csv").read_bytes() for split in SPLITS if (root / f"{split}.csv").is_file()]
        return form if any(label.encode() in text for text in texts for label in known) else None
    if form.open is _from_folders:
        return form if sum((root / name).is_dir() for name in form.needed(root)) >= len(known) / 2 else None
    return form


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


def _folders(root: Path) -> Iterator[str]:
    split_of = split_of_classes(NAME)
    below = any((root / split).is_dir() for split in SPLITS)
    yield from (f"{split}/{label}" if below else label for label, split in split_of.items())


def _from_folders(root: Path) -> Opened:
    split_of = split_of_classes(NAME)
    folders = dict(zip(split_of, _folders(root), strict=True))
    sources_of = {label: [f"{path}/{name}" for name in list_images(root / path)] for label, path in folders.items()}
    return split_of, sources_of, partial(open_below, root)


def _caches(root: Path) -> Iterator[str]:
    del root
    yield from map(CACHE.format, SPLITS)


def _from_caches(root: Path) -> Opened:
    def read(path: Path) -> tuple[Any, dict[str, Any]]:
        found = read_pickle(path, "image_data", "class_dict")
        return found["image_data"], found["class_dict"]

    return _from_arrays({split: root / CACHE.format(split) for split in SPLITS}, read)


def _pickles(root: Path) -> Iterator[str]:
    del root
    yield from PICKLES.values()


def _from_pickles(root: Path) -> Opened:
    def read(path: Path) -> tuple[Any, dict[str, Any]]:
        found = read_pickle(path, "data", "labels")
        numbers = np.asarray(found["labels"])
        # copies without names are about
        names = found.get("catname2label") or {f"class {number:02d}": number for number in np.unique(numbers).tolist()}
        return found["data"], {name: np.flatnonzero(numbers == number) for name, number in names.items()}

    return _from_arrays({split: root / name for split, name in PICKLES.items()}, read)


def _from_arrays(files: Mapping[str, Path], read: Callable[[Path], tuple[Any, dict[str, Any]]]) -> Opened:
    """Return what files of arrays have: for each split its images (n, h, w, 3), and the rows of each class."""
    published = split_of_classes(NAME)
    arrays: dict[str, Images] = {}
    split_of: dict[str, str] = {}
    sources_of: dict[str, list[str]] = {}
    place_of: dict[str, tuple[str, int]] = {}
    for split, path in files.items():
        images, rows_of = read(path)
        if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.ndim != 4 or images.shape[3] != 3:
            got = f"{images.dtype} {images.shape}" if isinstance(images, np.ndarray) else type(images).__name__
            raise MelaError(f"{path}: expected images, uint8 (n, h, w, 3), got {got}; fetch it again")
        expected = sum(one == split for one in published.values())
        if len(rows_of) != expected or any(published.get(label, split) != split for label in rows_of):
            raise MelaError(
                f"{path}: expected the {expected} classes of the published split {split}, got {len(rows_of)}, the "
                f"first of which is {next(iter(rows_of), None)!r}; fetch it again"
            )
        for label, rows in sorted(rows_of.items()):
            if label in split_of:
                raise MelaError(f"{path}: expected every class in one split, got {label!r} again; fetch it again")
            split_of[label], sources_of[label] = split, []
            for number, row in enumerate(np.asarray(rows).tolist()):
                if not isinstance(row, int) or not 0 <= row < len(images):
                    raise MelaError(
                        f"{path}: expected rows 0 to {len(images) - 1} for class {label!r}, got {row}; fetch it again"
                    )
                source = f"{split}/{label}/{number:03d}"
                sources_of[label].append(source)
                place_of[source] = (split, row)
        arrays[split] = images

    def open_source(source: str) -> Image.Image:
        split, row = place_of[source]
        return Image.fromarray(arrays[split][row])

    return split_of, sources_of, open_source


FORMS = (
    Form("the folder images with train.csv, val.csv and test.csv", _tables, _from_tables),
    Form("mini-imagenet-cache-train.pkl, -val.pkl and -test.pkl", _caches, _from_caches),
    Form(f"{', '.join(PICKLES.values())}", _pickles, _from_pickles),
    Form("a folder for each class, perhaps in train, val and test", _folders, _from_folders),
)
