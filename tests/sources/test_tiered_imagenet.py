"""tieredImageNet in the forms that people have, from small stand-ins: whole, in part and damaged."""

import io
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from mela.errors import MelaError
from mela.params import DataParams
from mela.sources import forms, tiered_imagenet
from mela.sources import open as opening
from mela.sources.benchmarks import split_of_classes
from mela.sources.check import recognised
from mela.sources.mini_imagenet import MINI_IMAGENET
from mela.sources.source import ImageSource
from mela.sources.tiered_imagenet import ARRAYS, LABELS, PNG, TIERED_IMAGENET
from tests.helpers.folders import check
from tests.helpers.project import ROOT, change

CLASSES = {"n01": "train", "n02": "train", "n03": "val", "n04": "test"}
# of the images in the files of each split, which are not sorted by class
NUMBERS = {"train": [1, 0, 1, 0, 0], "val": [0, 0], "test": [0, 0, 0]}
SIDE = 20


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (forms, tiered_imagenet):
        monkeypatch.setattr(module, "split_of_classes", lambda name: CLASSES)
    own = replace(TIERED_IMAGENET, of_split={split: len(numbers) for split, numbers in NUMBERS.items()})
    for module in (tiered_imagenet, opening):
        monkeypatch.setattr(module, "TIERED_IMAGENET", own)
    monkeypatch.setattr(recognised, "KNOWN", (own,))


def open_here() -> ImageSource:
    return tiered_imagenet.TIERED_IMAGENET.open(Path("raw"))


def pixels(split: str, row: int) -> np.ndarray:
    return np.random.default_rng([len(split), row]).integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)


def png(split: str, row: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels(split, row)).save(file, "PNG")
    return file.getvalue()


def dump(name: str, content: object, protocol: int = 2) -> None:
    path = Path("raw") / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(pickle.dumps(content, protocol=protocol))


def write_labels(key: str = "label_specific") -> None:
    for split, numbers in NUMBERS.items():
        dump(LABELS.format(split), {key: np.array(numbers), "label_specific_str": ["a crane", "a crane"]})


def write_png(protocol: int, made_of: Callable[[bytes], object]) -> None:
    write_labels()
    for split, numbers in NUMBERS.items():
        dump(PNG.format(split), [made_of(png(split, row)) for row in range(len(numbers))], protocol)


def as_array(encoded: bytes) -> np.ndarray:
    """As OpenCV encodes images."""
    return np.frombuffer(encoded, dtype=np.uint8)[:, None]


def write_arrays(save: Callable[..., None] = np.savez) -> None:
    write_labels("labels")
    for split, numbers in NUMBERS.items():
        # blue first, as OpenCV has it
        images = np.stack([pixels(split, row)[..., ::-1] for row in range(len(numbers))])
        save(Path("raw") / ARRAYS.format(split), images=images)


WRITERS: dict[str, Callable[[], None]] = {
    "PNG, protocol 2": lambda: write_png(2, as_array),
    "PNG, protocol 4": lambda: write_png(4, as_array),
    "PNG, protocol 5": lambda: write_png(5, as_array),
    "PNG, bytes": lambda: write_png(3, bytes),
    "arrays": write_arrays,
}


@pytest.mark.parametrize("form", WRITERS)
def test_files_of_images_and_labels(form: str) -> None:
    WRITERS[form]()
    source = open_here()
    assert source.classes is not None
    assert Counter(zip(source.classes, source.splits, strict=True)) == {
        ("train 000", "train"): 3,
        ("train 001", "train"): 2,
        ("val 000", "val"): 2,
        ("test 000", "test"): 3,
    }
    for index, (name, label) in enumerate(zip(source.sources, source.classes, strict=True)):
        split, row = name.split("/")
        assert NUMBERS[split][int(row)] == int(label[-3:])
        np.testing.assert_array_equal(np.asarray(source.load(index)), pixels(split, int(row)))


def test_python_2_wrote_text_for_bytes() -> None:
    """As protocol 2 of Python 2 has it: a string of one-byte letters, whatever they are."""
    write_labels()
    for split, numbers in NUMBERS.items():
        texts = [png(split, row) for row in range(len(numbers))]
        content = b"".join(b"T" + len(text).to_bytes(4, "little") + text for text in texts)
        (Path("raw") / PNG.format(split)).write_bytes(b"\x80\x02](" + content + b"e.")
    source = open_here()
    first = source.sources[0].split("/")
    np.testing.assert_array_equal(np.asarray(source.load(0)), pixels(first[0], int(first[1])))


def test_class_folders() -> None:
    for label, split in CLASSES.items():
        count = {"n01": 3, "n02": 2}.get(label, len(NUMBERS[split]))
        for row in range(count):
            folder = Path("raw") / split / label
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels(split, row)).save(folder / f"{row}.png")
    source = open_here()
    assert source.classes is not None
    assert Counter(source.classes) == {"n01": 3, "n02": 2, "n03": 2, "n04": 3}
    (Path("raw") / "val/n03/0.png").unlink()
    with pytest.raises(MelaError, match=r"expected 2 images of the split val in raw, got 1; point data.root at"):
        open_here()


def test_images_stay_on_disk() -> None:
    write_arrays()
    images = tiered_imagenet._mapped(Path("raw") / ARRAYS.format("train"))
    assert isinstance(images, np.memmap)
    assert images.shape == (5, SIDE, SIDE, 3)


def repickled(name: str, content: object) -> Callable[[], None]:
    return lambda: dump(name, content)


def cut(name: str, to: int) -> Callable[[], None]:
    path = Path("raw") / name
    return lambda: path.write_bytes(path.read_bytes()[:to]) and None


def replaced(**arrays: Any) -> Callable[[], None]:
    return lambda: np.savez(Path("raw") / ARRAYS.format("val"), **arrays)


def longer() -> None:
    """A header that promises more rows than there are bytes."""
    path = Path("raw") / ARRAYS.format("val")
    content = path.read_bytes()
    assert content.count(b"(2, 20, 20, 3)") == 1
    path.write_bytes(content.replace(b"(2, 20, 20, 3)", b"(9, 20, 20, 3)"))


@pytest.mark.parametrize(
    ("form", "spoil", "expected"),
    [
        (
            "PNG, bytes",
            lambda: (Path("raw") / PNG.format("val")).unlink(),
            "got no val_images_png.pkl; add what",
        ),
        (
            "PNG, bytes",
            cut(PNG.format("val"), 30),
            "val_images_png.pkl: expected a pickle of PNG images, got .*; ",
        ),
        ("PNG, bytes", repickled(PNG.format("val"), [b"\x89PNG"]), "expected 2 images, as val_labels.pkl has labels, "),
        ("PNG, bytes", repickled(LABELS.format("val"), {"label_specific": [0, 1]}), "expected 1 classes, got 2; fetch"),
        ("PNG, bytes", repickled(LABELS.format("val"), {"other": [0, 1]}), "expected 'labels' or 'label_specific' in"),
        ("PNG, bytes", repickled(LABELS.format("val"), {"labels": ["a", "b"]}), "expected labels as whole numbers"),
        ("PNG, bytes", repickled(LABELS.format("val"), {"labels": [0.0, float("nan")]}), "whole numbers .*, got list"),
        ("PNG, bytes", repickled(LABELS.format("val"), [0, 1]), "expected a pickle of a dictionary, got list"),
        ("arrays", lambda: write_arrays(np.savez_compressed), "not compressed, so that they can stay on disk, got com"),
        (
            "arrays",
            cut(ARRAYS.format("val"), 100),
            "val_images.npz: expected an archive of NumPy with the array",
        ),
        (
            "arrays",
            replaced(others=np.zeros(3)),
            "val_images.npz: expected an archive of NumPy with the array",
        ),
        (
            "arrays",
            replaced(images=np.zeros((2, 4, 4, 3))),
            r"expected images, uint8 \(n, h, w, 3\), got float64 ",
        ),
        ("arrays", replaced(images=np.asfortranarray(np.zeros((2, 4, 4, 3), np.uint8))), "row by row, got them in the"),
        ("arrays", longer, "val_images.npz: expected an archive of NumPy with the array"),
        ("arrays", replaced(images=np.zeros((2, 4, 4), np.uint8)), r"got uint8 \(2, 4, 4\); fetch it again"),
    ],
)
def test_what_is_not_whole(form: str, spoil: Callable[[], None], expected: str) -> None:
    WRITERS[form]()
    spoil()
    with pytest.raises(MelaError, match=expected) as caught:
        open_here()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", [lambda image: image[:60], lambda image: image[:40] + b"x" + image[41:]])
def test_an_image_that_cannot_be_decoded_is_named(damage: Callable[[bytes], bytes]) -> None:
    WRITERS["PNG, bytes"]()
    dump(PNG.format("val"), [png("val", 0), damage(png("val", 1))], 3)
    source = open_here()
    index = [*source.sources].index("val/000001")
    with pytest.raises(MelaError, match=r"^image '.*val_images_png.pkl: 1': expected a readable image, got .*"):
        source.load(index)


@pytest.mark.parametrize("form", ["PNG, protocol 2", "arrays"])
def test_the_check_names_the_form_and_the_pipeline_opens_it(form: str) -> None:
    WRITERS[form]()
    done = check("raw", "--write", "params.yaml", preset=None)
    assert done.status == 0
    assert done.out.startswith("raw: tieredImageNet, as train_images")
    data = DataParams.read(Path("params.yaml"))
    assert (data.name, data.image_size) == ("tiered_imagenet", 84)
    assert len(opening.open_source(data, shots=5)) == 10


def test_the_published_split() -> None:
    found = Counter(split_of_classes("tiered_imagenet").values())
    assert found == {"train": 351, "val": 97, "test": 160}
    assert TIERED_IMAGENET.of_split is not None
    assert sum(TIERED_IMAGENET.of_split.values()) == 779_165


def test_class_folders_of_one_are_not_taken_for_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for benchmark, name in ((TIERED_IMAGENET, "tiered"), (MINI_IMAGENET, "mini")):
        for label in split_of_classes(benchmark.name):
            (tmp_path / name / label).mkdir(parents=True)
        assert recognised.recognise(tmp_path / name) is benchmark
    for number in range(100):
        (tmp_path / f"tiered/n9{number}").mkdir()
    assert recognised.recognise(tmp_path / "tiered") is None, "ImageNet has these classes and others"
    own = tmp_path / "own"
    own.mkdir()
    (own / LABELS.format("train")).touch()
    assert recognised.recognise(own) is None, "others may call a file so"


def test_the_preset_has_the_values_of_the_paper() -> None:
    (Path("params.yaml")).write_text((ROOT / "presets/tiered_imagenet.yaml").read_text(encoding="utf-8"))
    change(Path("params.yaml"), {"data.root": "raw"})
    from mela.params import KMeansParams, LabelerParams, PretrainParams, TaskParams

    labeler, pretrain = LabelerParams.read(), PretrainParams.read()
    assert (labeler.n_clusters, labeler.q, KMeansParams.read().n_clusters) == (3000, 4.5, 351)
    assert (pretrain.epochs, pretrain.milestones) == (60, [30, 40])
    # the threshold of Algorithm 2 is above 0
    tasks, share = TaskParams.read().train or 0, 5 / labeler.n_clusters
    assert tasks * share > labeler.q * (tasks * share * (1 - share)) ** 0.5
