"""The layout of Meta-Album: a folder of images, a table of their classes, and perhaps a description."""

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from mela.errors import MelaError
from mela.params import DataParams
from mela.sources.class_folders import folder
from mela.sources.data_warnings import remarks
from mela.sources.meta_album import album_names, is_meta_album
from mela.sources.open import open_source
from mela.sources.source import ImageSource
from tests.helpers.folders import check
from tests.helpers.project import change

CLASSES, PER_CLASS = ["ash", "oak/red", "elm", "fir", "yew", "box", "bay"], 4
NAMES = {f"{number}{place}.png": label for number in range(PER_CLASS) for place, label in enumerate(CLASSES)}


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set in the folder `mine` of the current directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine/images").mkdir(parents=True)
    for grey, name in enumerate(NAMES):
        Image.new("RGB", (20, 20), (grey, 8 * grey, 7)).save(tmp_path / "mine/images" / name)
    table().to_csv(tmp_path / "mine/labels.csv", index=False)
    return Path("mine")


def table() -> pd.DataFrame:
    return pd.DataFrame({"FILE_NAME": NAMES.keys(), "CATEGORY": NAMES.values(), "SUPER_CATEGORY": "tree"})


def read(split_table: str | None = None, seed: int = 0) -> ImageSource:
    path = None if split_table is None else Path("mine") / split_table
    return folder(Path("mine"), split_table=path, split_fractions=(0.5, 0.25, 0.25), seed=seed, names=album_names)


def require_whole(source: ImageSource) -> None:
    assert source.classes is not None
    assert Counter(source.classes) == dict.fromkeys(CLASSES, PER_CLASS)
    assert dict(zip(source.sources, source.classes, strict=True)) == {f"images/{n}": own for n, own in NAMES.items()}
    for index, name in enumerate(source.sources):
        assert source.load(index).getpixel((0, 0))[0] == [*NAMES].index(name.removeprefix("images/"))


def test_the_table_tells_the_classes() -> None:
    source = read()
    require_whole(source)
    splits = dict(zip(source.classes or (), source.splits, strict=True))
    assert {*splits.values()} == {"train", "val", "test"}
    assert [splits[label] for label in source.classes or ()] == [*source.splits], "a class is in one split"
    assert any([*read(seed=seed).splits] != [*source.splits] for seed in range(1, 5))


def test_a_description_may_name_the_columns(root: Path) -> None:
    table().rename(columns={"FILE_NAME": "file", "CATEGORY": "kind"}).to_csv(root / "labels.csv", index=False)
    assert not is_meta_album(root)
    info = {"image_column_name": "file", "category_column_name": "kind", "dataset_name": "trees"}
    (root / "info.json").write_text(json.dumps(info))
    assert is_meta_album(root)
    require_whole(read())


def test_a_table_of_splits(root: Path) -> None:
    (root / "split.csv").write_text("split,class\ntrain,ash\ntrain,oak/red\ntest,elm\n")
    source = read("split.csv")
    assert Counter(zip(source.classes or (), source.splits, strict=True)) == {
        ("ash", "train"): PER_CLASS,
        ("oak/red", "train"): PER_CLASS,
        ("elm", "test"): PER_CLASS,
    }
    (root / "split.csv").write_text("split,class\ntrain,ash\ntrain,oak\n")
    with pytest.raises(MelaError, match=r"expected images of the class 'oak' in mine, got none"):
        read("split.csv")


def rows(*changed: dict[str, str]) -> str:
    """The table with other rows before its own, which begin on line 2."""
    return pd.concat([pd.DataFrame([*changed]), table()]).to_csv(index=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            rows({"FILE_NAME": "x.png", "CATEGORY": "ash"}),
            r"labels.csv, line 2: expected an image in mine.images, got n",
        ),
        (
            rows({"FILE_NAME": "00.png", "CATEGORY": ""}),
            r"line 2: expected a class, got an empty cell; fill it or remo",
        ),
        (rows({"FILE_NAME": "00.png", "CATEGORY": "elm"}), r"line 3: expected every image once, got '00.png' again"),
        ("FILE_NAME,KIND\n00.png,ash\n", r"labels.csv: expected the column 'CATEGORY'"),
        ("", r"labels.csv: expected the column"),
    ],
)
def test_what_is_wrong_in_the_table(text: str, expected: str, root: Path) -> None:
    (root / "labels.csv").write_text(text)
    with pytest.raises(MelaError, match=expected) as caught:
        read()
    assert "\n" not in str(caught.value)


def test_what_is_missing(root: Path) -> None:
    (root / "images/00.png").unlink()
    with pytest.raises(MelaError, match=r"line 2: expected an image in mine.images, got no '00.png'; add it"):
        read()
    (root / "labels.csv").unlink()
    with pytest.raises(MelaError, match=r"data.root: expected a readable file at mine.labels.csv"):
        read()


@pytest.mark.parametrize(
    ("text", "expected"), [("{", "expected JSON, got"), ("[]", "expected a JSON object, got list")]
)
def test_a_damaged_description(text: str, expected: str, root: Path) -> None:
    (root / "info.json").write_text(text)
    with pytest.raises(MelaError, match=rf"info.json: {expected}.*; correct or remove it"):
        read()
    assert check("mine").status == 1


def test_the_check_recognises_it_and_gives_its_parameters(root: Path) -> None:
    for path in ("mine", "mine/labels.csv"):
        done = check(path, "--write", "params.yaml")
        assert done.status == 0, done.err
        assert done.out.startswith(
            "mine: taken for classes, since labels.csv names the class of each image, as in Meta-Album (--as tasks "
        )
        assert "  classes      7, splits drawn\n" in done.out
        data = DataParams.read(Path("params.yaml"))
        assert (data.name, data.table, Path(data.root).name) == ("meta_album", None, "mine")
        assert len(open_source(data, shots=1)) == len(NAMES)


def test_the_check_tells_all_that_is_wrong(root: Path) -> None:
    for name in ("00.png", "11.png"):
        (root / "images" / name).unlink()
    Image.new("RGB", (20, 20), (99, 3, 200)).save(root / "images/more.png")
    done = check("mine", "--all")
    assert done.status == 1
    assert sum("expected an image in mine/images, got no" in line for line in done.out.splitlines()) == 2
    assert "mine: 1 image is not in labels.csv; it is not used" in done.out


def test_a_header_that_is_nearly_right_is_recognised_and_told(root: Path) -> None:
    text = (root / "labels.csv").read_text()
    (root / "labels.csv").write_text(text.replace("FILE_NAME,CATEGORY", "FILE_NAME, Category"))
    assert is_meta_album(root)
    done = check("mine")
    assert done.status == 1
    assert "mine/labels.csv: expected the column 'CATEGORY', got " in done.out
    assert "rename ' Category'" in done.out


@pytest.mark.parametrize("content", [b"caf\xe9,b\n1,2\n", "a,b\n".encode("utf-16"), b"", b'"a,b\n'])
def test_other_tables_are_not_its_own(content: bytes, root: Path) -> None:
    (root / "labels.csv").write_bytes(content)
    assert not is_meta_album(root)


def test_images_may_lie_in_folders(root: Path) -> None:
    (root / "images/sub").mkdir()
    (root / "images/00.png").rename(root / "images/sub/00.png")
    (root / "labels.csv").write_text((root / "labels.csv").read_text().replace("\n00.png", "\nsub/00.png"))
    assert "images/sub/00.png" in read().sources


def test_a_table_of_splits_can_be_named(root: Path) -> None:
    (root / "split.csv").write_text("split,class\n" + "".join(f"train,{label}\n" for label in CLASSES))
    (root / "info.json").write_text("{}")
    for path in ("mine", "mine/split.csv"):
        done = check(path, "--write", "params.yaml")
        assert done.status == 0, done.out
        assert "not used" not in done.out
        data = DataParams.read(Path("params.yaml"))
        assert (data.name, data.table) == ("meta_album", "split.csv")
        assert [*remarks(open_source(data, shots=1), data)] == []


def test_a_folder_of_classes_stays_one(root: Path) -> None:
    (root / "labels.csv").write_text("image,label\n00.png,ash\n")
    assert not is_meta_album(root)
    assert check("mine", "--as", "classes").out.startswith("mine: taken for classes, one in each folder, as asked for")


def test_the_pipeline_opens_it_by_name(root: Path) -> None:
    check("mine", "--write", "params.yaml")
    change(Path("params.yaml"), {"data.table": "split.csv"})
    (root / "split.csv").write_text("split,class\ntrain,ash\ntrain,elm\n")
    source = open_source(DataParams.read(Path("params.yaml")), shots=1)
    assert {*(source.classes or ())} == {"ash", "elm"}
