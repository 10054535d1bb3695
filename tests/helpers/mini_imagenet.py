"""Small stand-ins for miniImageNet in the forms that people have."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mela.sources import forms, mini_imagenet
from mela.sources import open as opening
from mela.sources.check import recognised
from mela.sources.mini_imagenet import CACHE, NAME, PICKLES

CLASSES = {"n01": "train", "n02": "train", "n03": "val", "n04": "test"}
PER_CLASS, SIDE = 3, 6
LABELS = {split: [label for label, own in CLASSES.items() if own == split] for split in ("train", "val", "test")}


def shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let miniImageNet have few classes and images."""
    for module in (forms, mini_imagenet):
        monkeypatch.setattr(module, "split_of_classes", lambda name: CLASSES if name == NAME else {})
    small = replace(mini_imagenet.MINI_IMAGENET, of_class=PER_CLASS)
    for module in (mini_imagenet, recognised, opening):
        monkeypatch.setattr(module, "MINI_IMAGENET", small)
    monkeypatch.setattr(recognised, "KNOWN", (small,))


def pixels(label: str, number: int) -> np.ndarray:
    """An image of one colour, which tells its class and number."""
    return np.full((SIDE, SIDE, 3), [10 * int(label[1:]), 50 * number, 7], dtype=np.uint8)


def save(path: Path, label: str, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels(label, number)).save(path)


def write_tables(root: Path) -> None:
    for split, labels in LABELS.items():
        rows = [(f"{label}{number:08d}.png", label) for label in labels for number in range(PER_CLASS)]
        for name, label in rows:
            save(root / "images" / name, label, int(name[3:11]))
        lines = ["filename,label", *(f"{name.replace('.png', '.jpg')},{label}" for name, label in rows)]
        (root / f"{split}.csv").write_text("\n".join(lines) + "\n")


def write_folders(root: Path, *, below: bool = False) -> None:
    for label, split in CLASSES.items():
        for number in range(PER_CLASS):
            save((root / split if below else root) / label / f"{number}.png", label, number)


def array_of(labels: list[str]) -> np.ndarray:
    """Images class by class, in an order of their own."""
    return np.stack([pixels(label, number) for number in range(PER_CLASS) for label in labels])


def rows_of(labels: list[str]) -> dict[str, list[int]]:
    return {label: [place + len(labels) * number for number in range(PER_CLASS)] for place, label in enumerate(labels)}


def dump(path: Path, content: object, protocol: int = 2) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol=protocol))


def write_caches(root: Path, protocol: int = 4) -> None:
    for split, labels in LABELS.items():
        content = {"image_data": array_of(labels), "class_dict": rows_of(labels)}
        dump(root / CACHE.format(split), content, protocol)


def write_pickles(root: Path, *, named: bool = True, numbers: Callable[[list[int]], Any] = list) -> None:
    first = 0
    for split, labels in LABELS.items():
        known = {label: first + place for place, label in enumerate(labels)}
        content: dict[str, Any] = {"data": array_of(labels), "labels": numbers([*known.values()] * PER_CLASS)}
        dump(root / PICKLES[split], content | ({"catname2label": known} if named else {}))
        first += len(labels)


WRITERS: dict[str, Callable[[Path], None]] = {
    "tables": write_tables,
    "folders": write_folders,
    "folders of splits": lambda root: write_folders(root, below=True),
    "caches": write_caches,
    "caches, protocol 2": lambda root: write_caches(root, 2),
    "caches, protocol 5": lambda root: write_caches(root, 5),
    "pickles": write_pickles,
    "pickles, numbers of numpy": lambda root: write_pickles(root, numbers=lambda labels: list(np.array(labels))),
    "pickles, an array": lambda root: write_pickles(root, numbers=np.array),
}
