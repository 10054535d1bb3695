"""Open published benchmarks in the forms that people have them in, found out by the files that are there."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PIL import Image

from mela.errors import MelaError
from mela.io.schemas import SPLITS
from mela.sources.benchmarks import source_of_classes, split_of_classes
from mela.sources.image_files import list_images, open_below, require_folder
from mela.sources.image_lists import home_in
from mela.sources.source import ImageSource

# the split of each class, the images of each class, and what opens an image
Opened = tuple[Mapping[str, str], Mapping[str, list[str]], Callable[[str], Image.Image]]
NAMED = 3
# folders that may hold those of classes
PARTS = (*SPLITS, "valid")


@dataclass(frozen=True, kw_only=True)
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
    is_sure : callable
        Takes a folder with some of what is needed, and tells whether it holds this form without doubt.
    """

    title: str
    needed: Callable[[Path], Iterator[str]]
    open: Callable[[Path], Opened]
    is_sure: Callable[[Path], bool] = lambda root: True


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Describe a published benchmark.

    Attributes
    ----------
    name : str
        Value of ``data.name``, and name of the table of splits.
    title : str
        What people call it.
    preset : str
        Preset that ``mela data check`` starts from.
    forms : tuple of Form
    of_class : int, optional
        Images of each class, if all have as many.
    of_split : mapping, optional
        Images of each split.
    of_all : int, optional
        Images of all classes.
    """

    name: str
    title: str
    preset: str
    forms: tuple[Form, ...]
    of_class: int | None = None
    of_split: Mapping[str, int] | None = None
    of_all: int | None = None

    def open(self, root: Path) -> ImageSource:
        """Open the benchmark in a folder.

        Raises
        ------
        MelaError
            There is none of its forms, or it is not whole.
        """
        require_folder(root, "data.root")
        form = self.form_of(root)
        if form is None:
            titles = "; or ".join(one.title for one in self.forms)
            raise MelaError(
                f"data.root: expected {self.title} in {root}, which is {titles}; got none of them; set data.root to "
                "its folder"
            )
        if missing := [name for name in form.needed(root) if not (root / name).exists()]:
            more = f" ({len(missing)} are missing)" if len(missing) > NAMED else ""
            raise MelaError(
                f"data.root: expected {form.title} in {root}, got no {', '.join(missing[:NAMED])}{more}; add what is "
                "missing"
            )
        split_of, sources_of, open_source = form.open(root)
        advice = "point data.root at the complete data set"
        for split, expected in (self.of_split or {}).items():
            found = sum(len(sources_of[label]) for label, own in split_of.items() if own == split)
            if found != expected:
                raise MelaError(
                    f"data.root: expected {expected:,} images of the split {split} in {root}, got {found:,}; {advice}"
                )
        found = sum(map(len, sources_of.values()))
        if self.of_all is not None and found != self.of_all:
            raise MelaError(f"data.root: expected {self.of_all:,} images in {root}, got {found:,}; {advice}")
        return source_of_classes(split_of, sources_of, open_source, root=root, expected=self.of_class, advice=advice)

    def form_of(self, root: Path) -> Form | None:
        """Return the form of which a folder has the largest part; None if it has none of any."""
        best = max(self.forms, key=lambda form: part_of(form.needed, root))
        return best if part_of(best.needed, root) else None

    def recognised(self, root: Path) -> Form | None:
        """Return the form that a folder has without doubt: by its names, or because it has as many images in all."""
        form = self.form_of(root)
        return form if form is not None and (form.is_sure(root) or self._has_all(form, root)) else None

    def _has_all(self, form: Form, root: Path) -> bool:
        if self.of_all is None or part_of(form.needed, root) < 1:
            return False
        try:
            _, sources_of, _ = form.open(root)
        except MelaError:
            return False
        return sum(map(len, sources_of.values())) == self.of_all


def part_of(needed: Callable[[Path], Iterator[str]], root: Path) -> float:
    """Return the share of what a form needs that a folder has, from 0 to 1."""
    there = [(root / name).exists() for name in needed(root)]
    return sum(there) / len(there)


def has_half(needed: Callable[[Path], Iterator[str]]) -> Callable[[Path], bool]:
    """Return what tells whether a folder has half of the files that a form needs; one alone may be another's."""
    return lambda root: part_of(needed, root) >= 1 / 2


def class_folders(
    name: str, *, homes: Sequence[str] = (), names: Callable[[str], tuple[str, ...]] = lambda label: (label,)
) -> Form:
    """Return the form of a benchmark that has a folder for each class, perhaps in train, val and test.

    Parameters
    ----------
    name : str
        Table of the published split.
    homes : sequence of str
        Folders in which those of the classes may lie, each with a ``/`` behind.
    names : callable
        Takes a class, and returns what its folder may be called, the usual name first.
    """

    def places(root: Path) -> dict[str, list[str]]:
        """Return for each class the folders that are there, or the usual one if none is."""
        home = home_in(root, homes)
        below = [f"{part}/" for part in PARTS if (root / home / part).is_dir()]
        found = {}
        for label, split in split_of_classes(name).items():
            # copies that are split by images have a class in several parts
            there = [
                next((path for one in names(label) if (root / (path := f"{home}{part}{one}")).is_dir()), None)
                for part in below or [""]
            ]
            usual = f"{home}{split}/{names(label)[0]}" if below else f"{home}{names(label)[0]}"
            found[label] = [path for path in there if path is not None] or [usual]
        return found

    def needed(root: Path) -> Iterator[str]:
        yield from (paths[0] for paths in places(root).values())

    def open_folders(root: Path) -> Opened:
        sources_of = {
            label: [f"{path}/{file}" for path in paths for file in list_images(root / path)]
            for label, paths in places(root).items()
        }
        return split_of_classes(name), sources_of, partial(open_below, root)

    def is_sure(root: Path) -> bool:
        """Tell whether half of the classes of each split are there by their usual names, and few other folders."""
        split_of = split_of_classes(name)
        folders = dict(zip(split_of, map(root.joinpath, needed(root)), strict=True))
        usual = {label: folder for label, folder in folders.items() if folder.name == names(label)[0]}
        there = Counter(split_of[label] for label, folder in usual.items() if folder.is_dir())
        beside = {path for folder in folders.values() if folder.parent.is_dir() for path in folder.parent.iterdir()}
        all_there = sum(path.is_dir() for path in beside)
        expected = Counter(split_of.values())
        return all(2 * there[split] >= count for split, count in expected.items()) and all_there <= 1.1 * len(folders)

    title = "a folder for each class, perhaps in train, val and test"
    return Form(title=title, needed=needed, open=open_folders, is_sure=is_sure)
