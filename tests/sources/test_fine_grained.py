"""CUB-200-2011, FGVC-Aircraft and VGG Flower in the forms that people have, from stand-ins: whole, in part, damaged."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.io import savemat

from mela.errors import MelaError
from mela.params import DataParams, check_document
from mela.sources import forms, vgg_flower
from mela.sources.benchmarks import split_of_classes
from mela.sources.check.recognised import published_in, recognise
from mela.sources.image_lists import cut_to_box
from mela.sources.open import open_source
from mela.sources.packing import to_array
from mela.sources.source import ImageSource
from tests.helpers.fine_grained import (
    BOX,
    BY_NAME,
    HEIGHT,
    PER_CLASS,
    SPLIT_OF,
    WIDTH,
    WRITERS,
    colour,
    draw,
    shrink,
    small_one,
    write_aircraft,
    write_cub,
)
from tests.helpers.folders import check, edited, without
from tests.helpers.project import ROOT, change


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


def opened(form: str, root: Path) -> tuple[str, ImageSource]:
    name, write = (WRITERS | BY_NAME)[form]
    write(root)
    return name, small_one(name).open(root)


@pytest.mark.parametrize("form", WRITERS | BY_NAME)
def test_every_form_has_the_same_images(form: str, tmp_path: Path) -> None:
    name, source = opened(form, tmp_path)
    classes = SPLIT_OF[name]
    assert source.classes is not None
    assert Counter(source.classes) == dict.fromkeys(classes, PER_CLASS)
    assert [classes[label] for label in source.classes] == [*source.splits]
    assert len({*source.sources}) == len(source)
    found = {label: Counter[tuple[int, ...]]() for label in classes}
    for index, label in enumerate(source.classes):
        pixels = np.asarray(source.load(index))
        # the banner is cut off
        assert pixels.shape == (HEIGHT, WIDTH, 3)
        assert (pixels == pixels[0, 0]).all()
        found[label][*pixels[0, 0].tolist()] += 1
    for place, label in enumerate(classes):
        assert found[label] == {colour(place, number): 1 for number in range(PER_CLASS)}


@pytest.mark.parametrize(("name", "write"), [("cub", write_cub), ("aircraft", write_aircraft)])
def test_images_are_cut_to_their_boxes(name: str, write: Callable[..., None], tmp_path: Path) -> None:
    write(tmp_path, boxed=True)
    source = small_one(name, boxes=True).open(tmp_path)
    for index in range(len(source)):
        pixels = np.asarray(source.load(index))
        assert pixels.shape[:2] == BOX[2:]
        assert (pixels == pixels[0, 0]).all()
        assert pixels[0, 0, 2] == 7


def picture(width: int, height: int) -> Image.Image:
    """An image whose pixels tell their column and row."""
    rows, columns = np.mgrid[:height, :width]
    return Image.fromarray(np.stack([columns, rows, rows], axis=-1).astype(np.uint8))


@given(
    st.tuples(*[st.integers(1, 60)] * 2),
    st.tuples(*[st.floats(-10, 70)] * 4).map(
        lambda box: (min(box[::2]), min(box[1::2]), max(box[::2]), max(box[1::2]))
    ),
)
def test_a_square_holds_the_box(size: tuple[int, int], box: tuple[float, float, float, float]) -> None:
    """It has every whole pixel of the box that the image has, and is no longer than the longer side of these."""
    left, top, right, bottom = box
    if min(right, size[0]) <= max(left, 0) or min(bottom, size[1]) <= max(top, 0):
        with pytest.raises(MelaError, match=r"^image 'a': expected a box within its \d+ x \d+ pixels, got "):
            cut_to_box(picture(*size), box, "a")
        return
    cut = cut_to_box(picture(*size), box, "a")
    spans = [(max(left, 0), min(right, size[0])), (max(top, 0), min(bottom, size[1]))]
    longest = max(np.ceil(last) - np.floor(first) for first, last in spans)
    assert cut.width == cut.height == longest
    pixels = np.asarray(cut).astype(int)
    for axis, (first, last) in enumerate(spans):
        assert pixels[..., axis].min() <= np.ceil(first)
        assert pixels[..., axis].max() >= np.floor(last) - 1
    # neighbours stay neighbours, and the edge is repeated
    assert {*np.diff(pixels[..., 0], axis=1).ravel().tolist()} <= {0, 1}
    assert {*np.diff(pixels[..., 1], axis=0).ravel().tolist()} <= {0, 1}


def test_a_wide_box_is_packed_whole() -> None:
    """An aircraft as long as the picture keeps nose and tail, and a square inside the picture has no repeated edge."""
    packed = to_array(cut_to_box(picture(100, 60), (5, 25, 95, 45), "a"), size=90, channels=3)
    assert packed[:, 0, 0].tolist() == [5] * 90
    assert packed[:, -1, 0].tolist() == [94] * 90
    # 15 rows above and 15 below are the edge's
    assert packed[:, 0, 1].tolist() == [0] * 15 + [*range(60)] + [59] * 15
    small = np.asarray(cut_to_box(picture(100, 60), (90, 2, 98, 6), "a"))
    assert small[0, :, 0].tolist() == [*range(90, 98)]
    assert small[:, 0, 1].tolist() == [*range(8)], "it is moved into the image"


@pytest.mark.parametrize("mode", ["1", "L", "RGB"])
def test_every_mode_can_be_cut(mode: str) -> None:
    assert cut_to_box(picture(20, 10).convert(mode), (0, 0, 20, 10), "a").size == (20, 20)


def relabelled(values: object) -> Callable[[Path], None]:
    return lambda root: savemat(root / "imagelabels.mat", {"labels": values})


BIRD = "images/001.Black_Bird/Black_Bird_0000.jpg"


@pytest.mark.parametrize(
    ("form", "spoil", "expected"),
    [
        (
            "cub",
            without(BIRD),
            rf"images that images.txt names, but not all are there; missing: 1, such as '{BIRD}'; add them",
        ),
        (
            "cub",
            edited("images.txt", "2 002.Red", "2 005.Red"),
            "images of the 200 classes of birds, got '005.Red_Bird/",
        ),
        ("cub", edited("images.txt", "2 002", "1 002"), "images.txt, line 2: expected each image once, got '1' again"),
        (
            "cub",
            edited("images.txt", "2 002", "002"),
            "images.txt, line 2: expected an image, a blank and more, got '0",
        ),
        ("cub", edited("images.txt", "1 001.Black_Bird/Black_Bird_0000.jpg\n", ""), "expected 12 images in .*, got 11"),
        (
            "cub, folders",
            without("004.Tern/0.png"),
            "expected 12 images in .*, got 11; point data.root at the complete",
        ),
        ("aircraft", without("images/0000001.jpg"), "missing: 1, such as 'images/0000001.jpg'; add them"),
        ("aircraft", without("images_variant_val.txt"), "got no images_variant_val.txt; add what is missing"),
        (
            "aircraft",
            edited("images_variant_val.txt", "F-16A/B", "F-16"),
            "images_variant_val.txt, image '1000001': expected one of the 100 variants, got 'F-16'; fetch it again",
        ),
        ("aircraft", edited("images_variant_val.txt", "1000001 F-16A/B\n", ""), "class 'F-16A/B', got 2"),
        ("vgg_flower", without("jpg/image_00003.jpg"), "missing: 1, such as 'jpg/image_00003.jpg'; add them"),
        ("vgg_flower", without("imagelabels.mat"), "got no imagelabels.mat; add what is missing"),
        ("vgg_flower", relabelled([[1, 2, 3, 4] * 2]), "expected 12 images in .*, got 8"),
        ("vgg_flower", relabelled([[1, 2, 3, 9]]), "expected numbers of classes from 1 to 4, got 9 for image 4; fetch"),
        ("vgg_flower", relabelled([["a"]]), r"expected labels as whole numbers \(n,\), got"),
        (
            "vgg_flower",
            lambda root: (root / "imagelabels.mat").write_bytes(b"MATLAB"),
            "imagelabels.mat: expected a file of MATLAB with 'labels', got .*; fetch it again",
        ),
    ],
)
def test_what_is_not_whole(form: str, spoil: Callable[[Path], None], expected: str, tmp_path: Path) -> None:
    name, write = WRITERS[form]
    write(tmp_path)
    spoil(tmp_path)
    with pytest.raises(MelaError, match=expected) as caught:
        small_one(name).open(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "write", "spoil", "expected"),
    [
        ("cub", write_cub, without("bounding_boxes.txt"), "got no bounding_boxes.txt; add what is missing"),
        ("cub", write_cub, edited("bounding_boxes.txt", "3 4.0 5.0 12.0 12.0\n", ""), r"got none for .* \(image 3\)"),
        (
            "cub",
            write_cub,
            edited("bounding_boxes.txt", "3 4.0", "3 a"),
            "image '3': expected four numbers, got 'a 5.0 ",
        ),
        ("cub", write_cub, edited("bounding_boxes.txt", "3 4.0", "3"), "expected four numbers, got '5.0 12.0 12.0'"),
        (
            "aircraft",
            write_aircraft,
            edited("images_box.txt", "1000001 ", "9000001 "),
            "got none for 'images/1000001.jpg'",
        ),
    ],
)
def test_boxes_that_are_not_whole(
    name: str, write: Callable[[Path], None], spoil: Callable[[Path], None], expected: str, tmp_path: Path
) -> None:
    write(tmp_path)
    spoil(tmp_path)
    # without boxes nothing is missed
    assert len(small_one(name).open(tmp_path)) == 4 * PER_CLASS
    with pytest.raises(MelaError, match=expected):
        small_one(name, boxes=True).open(tmp_path)


def test_a_box_outside_the_image(tmp_path: Path) -> None:
    write_cub(tmp_path)
    edited("bounding_boxes.txt", "1 4.0", "1 400.0")(tmp_path)
    source = small_one("cub", boxes=True).open(tmp_path)
    with pytest.raises(MelaError, match=rf"^image '{BIRD}': expected a box within its 40 x 30 pixels, got"):
        source.load(source.sources.index(BIRD))


def test_class_folders_have_no_boxes(tmp_path: Path) -> None:
    WRITERS["cub, folders"][1](tmp_path)
    with pytest.raises(
        MelaError, match=r"which is the folder images with images.txt and bounding_boxes.txt, as it is "
    ):
        small_one("cub", boxes=True).open(tmp_path)


@pytest.mark.parametrize("form", WRITERS)
def test_the_check_names_every_form(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name, write = WRITERS[form]
    write(Path("mine"))
    found = recognise(Path("mine"))
    assert found is not None
    assert found.name == name
    done = check("mine", "--write", "params.yaml", preset=None)
    assert (done.status, done.err.count("error")) == (0, 0)
    assert done.out.startswith(f"mine: {found.title}, as ")
    assert "  images       12\n  classes      2 train, 1 val, 1 test, as published\n" in done.out
    check_document(Path("params.yaml"))
    data = DataParams.read(Path("params.yaml"))
    assert (data.name, Path(data.root).name, data.image_size) == (name, "mine", 84)


def test_the_check_names_several_in_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_cub(Path("mine/birds"), boxed=True)
    WRITERS["aircraft, folders"][1](Path("mine/planes"))
    WRITERS["vgg_flower"][1](Path("mine/flowers"))
    done = check("mine", "--write", "params.yaml", preset=None)
    assert (done.status, done.err.count("error")) == (0, 0)
    for title in ("mine/birds: CUB-200-2011, as ", "mine/planes: FGVC-Aircraft, as ", "mine/flowers: VGG Flower, as "):
        assert title in done.out
    check_document(Path("params.yaml"))
    data = DataParams.read(Path("params.yaml"))
    assert data.name == "mixed"
    assert [(one.name, one.root, one.boxes) for one in data.datasets or ()] == [
        ("cub", "birds", True),
        ("vgg_flower", "flowers", False),
        ("aircraft", "planes", False),
    ]
    assert "n_clusters: 6 " in Path("params.yaml").read_text(), "the true number of training classes"
    source = open_source(data, shots=5)
    assert Counter(source.datasets) == dict.fromkeys(["birds", "flowers", "planes"], 4 * PER_CLASS)
    # printed where no file is asked for
    assert "birds" in check("mine", preset=None).out.partition("params.yaml: ")[2]

    (tmp_path / "mine/birds/images.txt").rename(tmp_path / "list.txt")
    (tmp_path / "mine/planes/A310/0.png").unlink()
    done = check("mine", preset=None)
    assert done.status == 1
    assert "expected 3 images in mine/planes, class 'A310', got 2" in done.err


def test_what_lies_beside_published_data_sets(tmp_path: Path) -> None:
    write_cub(tmp_path / "birds")
    WRITERS["vgg_flower"][1](tmp_path / "flowers")
    (tmp_path / "__MACOSX").mkdir()
    (tmp_path / "__MACOSX/._birds").touch()
    found = published_in(tmp_path)
    assert found is not None
    assert [*found.benchmarks] == ["birds", "flowers"]
    draw(tmp_path / "mushrooms/cat/0.png", 0, 0)
    with pytest.raises(
        MelaError, match=r"VGG Flower in flowers, and something else in mushrooms; name all of them in d"
    ):
        published_in(tmp_path)
    for number in range(30):
        draw(tmp_path / f"class {number}/0.png", 0, 0)
    assert published_in(tmp_path) is None, "so many folders are people or classes, and are not searched"


@pytest.mark.parametrize("preset", ["metadataset_cpu", "mini_imagenet_cpu", "glyphs"])
@pytest.mark.parametrize("several", [True, False])
def test_parameters_fit_whatever_preset_they_come_from(
    preset: str, several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_cub(Path("mine/birds"))
    write_aircraft(Path("mine/planes"))
    path = Path("mine") if several else Path("mine/birds")
    assert check(path, "--write", "params.yaml", preset=ROOT / f"presets/{preset}.yaml").status == 0
    data = DataParams.read(Path("params.yaml"))
    assert (data.name, data.boxes, data.datasets is None) == (
        ("mixed", False, False) if several else ("cub", True, True)
    )
    assert len(open_source(data, shots=1)) == 4 * PER_CLASS * (2 if several else 1)
    # others' classes have no part of the preset's data either
    check("mine/birds/images", "--as", "classes", "--write", "others.yaml", preset=ROOT / f"presets/{preset}.yaml")
    assert DataParams.read(Path("others.yaml")).name == "folder"


@pytest.mark.parametrize("form", BY_NAME)
def test_folders_of_other_names_are_recognised_by_the_number_of_images(form: str, tmp_path: Path) -> None:
    name, write = BY_NAME[form]
    write(tmp_path)
    found = recognise(tmp_path)
    assert found is not None
    assert found.name == name
    next(tmp_path.rglob("0.png")).unlink()
    # of aircraft, one folder of four has another name than usual
    assert (recognise(tmp_path) is None) == (name != "aircraft"), "a folder 001 may be anything"


def test_a_class_has_one_folder_whatever_it_may_be_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number 100 is the same with and without zeros before it."""
    classes = {"099.iris": "train", "100.rose": "test"}
    for module in (forms, vgg_flower):
        monkeypatch.setattr(module, "split_of_classes", lambda name: classes)
    for folder in ("99", "100"):
        draw(tmp_path / folder / "0.png", 0, 0)
    benchmark = replace(small_one("vgg_flower"), of_all=2)
    assert benchmark.open(tmp_path).sources == ["99/0.png", "100/0.png"]
    draw(tmp_path / "099/1.png", 0, 0)
    assert benchmark.open(tmp_path).sources == ["099/1.png", "100/0.png"], "the usual name comes first"


def test_lists_of_other_images_are_not_recognised(tmp_path: Path) -> None:
    write_cub(tmp_path)
    path = tmp_path / "images.txt"
    path.write_text("".join(f"{number} cat/{number}.jpg\n" for number in range(12)))
    for folder in (tmp_path / "images").iterdir():
        folder.rename(folder.with_name(f"cat {folder.name[:3]}"))
    assert recognise(tmp_path) is None


@pytest.mark.parametrize("name", SPLIT_OF)
def test_the_pipeline_opens_it_by_name(name: str, tmp_path: Path) -> None:
    WRITERS[name][1](tmp_path / "raw")
    (tmp_path / "params.yaml").write_text((ROOT / "presets/mini_imagenet_cpu.yaml").read_text(encoding="utf-8"))
    change(tmp_path / "params.yaml", {"data.name": name, "data.root": str(tmp_path / "raw")})
    data = DataParams.read(tmp_path / "params.yaml")
    assert len(open_source(data, shots=5)) == 4 * PER_CLASS


@pytest.mark.parametrize("parts", [("train", "test"), ("train", "valid")])
def test_class_folders_may_be_split_by_images(parts: tuple[str, str], tmp_path: Path) -> None:
    """Each class is in both parts, as copies for classification are; the split of classes stays the published one."""
    for place, label in enumerate(SPLIT_OF["cub"]):
        for number in range(PER_CLASS):
            draw(tmp_path / parts[number == 0] / label / f"{number}.png", place, number)
    source = small_one("cub").open(tmp_path)
    assert Counter(source.classes) == dict.fromkeys(SPLIT_OF["cub"], PER_CLASS)
    assert [SPLIT_OF["cub"][label] for label in source.classes or ()] == [*source.splits]
    found = published_in(tmp_path)
    assert found is not None
    assert [*found.benchmarks] == [""], "its parts are no data sets"


def test_something_else(tmp_path: Path) -> None:
    draw(tmp_path / "cat/0.png", 0, 0)
    for name in SPLIT_OF:
        with pytest.raises(MelaError, match=r"^data.root: expected .* in .*, which is the folder (images|jpg) with"):
            small_one(name).open(tmp_path)


KNOWN_CLASSES = {
    "cub": {"train": "190.Red_cockaded_Woodpecker", "val": "044.Frigatebird", "test": "008.Rhinoceros_Auklet"},
    "aircraft": {"train": "A340-300", "val": "737-900", "test": "737-400"},
    "vgg_flower": {"train": "090.canna lily", "val": "010.globe thistle", "test": "005.english marigold"},
}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cub", {"train": 140, "val": 30, "test": 30}),
        ("aircraft", {"train": 70, "val": 15, "test": 15}),
        ("vgg_flower", {"train": 71, "val": 15, "test": 16}),
    ],
)
def test_the_published_splits(name: str, counts: dict[str, int]) -> None:
    split_of = split_of_classes(name)
    assert Counter(split_of.values()) == counts
    assert {split: split_of[label] for split, label in KNOWN_CLASSES[name].items()} == {
        split: split for split in counts
    }
