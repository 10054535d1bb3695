"""miniImageNet in every form that people have, from small stand-ins: whole, in part and damaged."""

import pickle
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mela.errors import MelaError
from mela.params import DataParams
from mela.sources import mini_imagenet as module
from mela.sources.benchmarks import split_of_classes
from mela.sources.mini_imagenet import CACHE, PICKLES
from mela.sources.open import open_source
from mela.sources.source import ImageSource
from tests.helpers.folders import edited, without
from tests.helpers.mini_imagenet import (
    CLASSES,
    PER_CLASS,
    WRITERS,
    dump,
    pixels,
    save,
    shrink,
    write_caches,
    write_folders,
    write_pickles,
)
from tests.helpers.project import ROOT, change


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


def mini_imagenet(root: Path) -> ImageSource:
    return module.MINI_IMAGENET.open(root)


@pytest.mark.parametrize("form", WRITERS)
def test_every_form_has_the_same_images(form: str, tmp_path: Path) -> None:
    WRITERS[form](tmp_path)
    source = mini_imagenet(tmp_path)
    assert source.classes is not None
    assert Counter(source.classes) == dict.fromkeys(CLASSES, PER_CLASS)
    assert [CLASSES[label] for label in source.classes] == [*source.splits]
    assert len({*source.sources}) == len(source) == PER_CLASS * len(CLASSES)
    for index, label in enumerate(source.classes):
        np.testing.assert_array_equal(np.asarray(source.load(index)), pixels(label, index % PER_CLASS))


def test_pickles_without_names_have_numbers(tmp_path: Path) -> None:
    write_pickles(tmp_path, named=False)
    source = mini_imagenet(tmp_path)
    assert source.classes is not None
    names = [f"{split} {number:02d}" for number, split in enumerate(CLASSES.values())]
    assert Counter(source.classes) == dict.fromkeys(names, PER_CLASS)
    assert Counter(source.splits) == {"train": 6, "val": 3, "test": 3}
    for index, name in enumerate(source.classes):
        label = [*CLASSES][int(name[-2:])]
        np.testing.assert_array_equal(np.asarray(source.load(index)), pixels(label, index % PER_CLASS))


def repickled(name: str, **changes: Any) -> Callable[[Path], None]:
    def again(root: Path) -> None:
        content = pickle.loads((root / name).read_bytes()) | changes
        dump(root / name, {key: value for key, value in content.items() if value is not None})

    return again


VAL = CACHE.format("val")


@pytest.mark.parametrize(
    ("form", "spoil", "expected"),
    [
        ("tables", without("val.csv"), "expected the folder images with .* got no val.csv; add what is missing"),
        ("tables", without("images/n0200000001.png", "images/n0400000002.png"), r"but 2 are missing, such as 'n020+1"),
        (
            "tables",
            edited("val.csv", ",n03", ",n01"),
            "val.csv, line 2: expected a class of the published split val",
        ),
        (
            "tables",
            edited("val.csv", "filename", "file"),
            "val.csv: expected the column 'filename', got 'file'",
        ),
        ("tables", edited("val.csv", "n0300000000.jpg,n03\n", ""), "expected 3 images in .*, class 'n03', got 2"),
        ("folders", without("n03/0.png"), "expected 3 images in .*, class 'n03', got 2"),
        ("caches", without(VAL), rf"expected mini-imagenet-cache-train.pkl, -val.pkl and .*, got no {VAL}; add what"),
        ("caches", repickled(VAL, image_data=None), rf"{VAL}: expected 'image_data', 'class_dict' in it, got 'class_d"),
        (
            "caches",
            repickled(VAL, image_data=[1]),
            rf"{VAL}: expected images, uint8 \(n, h, w, 3\), got list",
        ),
        ("caches", repickled(VAL, image_data=np.zeros((3, 6, 6))), r"got float64 \(3, 6, 6\); fetch it again"),
        ("caches", repickled(VAL, class_dict={"n01": [0, 1, 2]}), "expected the 1 classes of the published split val"),
        (
            "caches",
            repickled(VAL, class_dict={}),
            "classes of the published split val, got 0; fetch it again",
        ),
        ("caches", repickled(VAL, class_dict={"cat": [0, 1, 2]}), "split val, got 1, among them 'cat'; fetch it again"),
        (
            "caches",
            repickled(VAL, class_dict={b"n03": [0, 1, 2]}),
            "split val, got 1, among them b'n03'; fetch",
        ),
        ("caches", repickled(VAL, class_dict=[[0, 1, 2]]), "expected rows by class, got list; fetch it again"),
        (
            "caches",
            repickled(VAL, class_dict={"n03": 1}),
            "expected rows of class 'n03' as whole numbers .*, got int",
        ),
        ("pickles", repickled(PICKLES["val"], catname2label=["n03"]), "expected 'catname2label' to be numbers by name"),
        ("pickles", repickled(PICKLES["val"], labels=["a", "b", "c"]), "expected labels as whole numbers .*, got list"),
        ("caches", repickled(VAL, class_dict={"n03": [0, 1, 3]}), "expected rows 0 to 2 for class 'n03', got 3; fetch"),
        ("caches", repickled(VAL, class_dict={"n03": [0, 1]}), "expected 3 images in .*, class 'n03', got 2"),
        ("pickles", without(PICKLES["test"]), f"got no {PICKLES['test']}; add what is missing"),
        (
            "pickles",
            repickled(PICKLES["val"], labels=None),
            "expected 'data', 'labels' in it, got 'data'",
        ),
    ],
)
def test_what_is_not_whole(form: str, spoil: Callable[[Path], None], expected: str, tmp_path: Path) -> None:
    WRITERS[form](tmp_path)
    spoil(tmp_path)
    with pytest.raises(MelaError, match=expected) as caught:
        mini_imagenet(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_cut_off_cache(tmp_path: Path) -> None:
    write_caches(tmp_path)
    path = tmp_path / VAL
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(MelaError, match=rf"{VAL}: expected a pickle of arrays, got .*; fetch it again"):
        mini_imagenet(tmp_path)


def test_numbers_may_begin_anew_in_each_split(tmp_path: Path) -> None:
    write_pickles(tmp_path, named=False)
    repickled(PICKLES["test"], labels=[0] * PER_CLASS)(tmp_path)
    source = mini_imagenet(tmp_path)
    assert source.classes is not None
    assert {*source.classes} == {"train 00", "train 01", "val 02", "test 00"}


def test_the_folder_may_have_any_name(tmp_path: Path) -> None:
    write_folders(tmp_path / "{mini}")
    assert len(mini_imagenet(tmp_path / "{mini}")) == PER_CLASS * len(CLASSES)


def test_a_part_of_the_class_folders_is_named(tmp_path: Path) -> None:
    save(tmp_path / "n02/0.png", "n02", 0)
    with pytest.raises(MelaError, match=r"perhaps in train, val and test in .*, got no n01, n03, n04; add what is mis"):
        mini_imagenet(tmp_path)


def test_something_else(tmp_path: Path) -> None:
    save(tmp_path / "cat/0.png", "n01", 0)
    with pytest.raises(MelaError, match=r"^data.root: expected miniImageNet in .*, which is the folder images with"):
        mini_imagenet(tmp_path)
    with pytest.raises(MelaError, match=r"^data.root: expected a folder at .*missing, got nothing"):
        mini_imagenet(tmp_path / "missing")


def test_the_pipeline_opens_it_by_name(tmp_path: Path) -> None:
    write_folders(tmp_path / "raw")
    (tmp_path / "params.yaml").write_text((ROOT / "presets/mini_imagenet.yaml").read_text(encoding="utf-8"))
    change(tmp_path / "params.yaml", {"data.root": str(tmp_path / "raw")})
    source = open_source(DataParams.read(tmp_path / "params.yaml"), shots=5)
    assert len(source) == PER_CLASS * len(CLASSES)


def test_the_published_split() -> None:
    split_of = split_of_classes("mini_imagenet")
    assert Counter(split_of.values()) == {"train": 64, "val": 16, "test": 20}
    assert split_of["n01532829"] == "train"
    assert split_of["n01855672"] == "val"
    assert split_of["n01930112"] == "test"
