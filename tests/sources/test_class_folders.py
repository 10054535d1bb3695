"""Images in one folder per class, and the decoding of single image files."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mela.errors import MelaError
from mela.params import PARAMS, DataParams
from mela.sources.class_folders import folder
from mela.sources.image_files import list_images, open_image
from mela.sources.open import open_source
from mela.sources.source import ImageSource
from mela.sources.splits_by_name import split_by_fractions
from tests.helpers.folders import truncated
from tests.helpers.project import change

FRACTIONS = (0.5, 0.25, 0.25)


def save(path: Path, grey: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (2, 2), grey).save(path)


def read(root: Path, table: Path | None = None, *, seed: int = 0) -> ImageSource:
    return folder(root, split_table=table, split_fractions=FRACTIONS, seed=seed)


def write_classes(root: Path, *labels: str) -> None:
    for i, label in enumerate(labels):
        for j in range(2):
            save(root / label / f"{j}.png", 10 * i + j)


def test_classes_are_the_folders_that_hold_images(tmp_path: Path) -> None:
    write_classes(tmp_path, "Greek/beta", "Greek/alpha", "Latin/a", "flat")
    (tmp_path / "Latin" / "a" / "2.JPEG").write_bytes((tmp_path / "flat" / "0.png").read_bytes())
    for ignored in ("notes.txt", "Latin/a/.hidden.png", "Latin/a/labels.csv", ".cache/0.png"):
        save(tmp_path / "x.png")
        (tmp_path / ignored).parent.mkdir(exist_ok=True)
        (tmp_path / "x.png").rename(tmp_path / ignored)
    source = read(tmp_path)
    assert source.classes == ["Greek/alpha"] * 2 + ["Greek/beta"] * 2 + ["Latin/a"] * 3 + ["flat"] * 2
    assert source.sources[4:7] == ["Latin/a/0.png", "Latin/a/1.png", "Latin/a/2.JPEG"]
    assert source.load(1).getpixel((0, 0)) == 11


def test_seeded_split_is_one_of_classes(tmp_path: Path) -> None:
    write_classes(tmp_path, *(f"c{i}" for i in range(12)))
    source = read(tmp_path, seed=3)
    assert source.classes is not None
    counts = Counter(split for _, split in set(zip(source.classes, source.splits, strict=True)))
    assert counts.total() == 12
    assert counts["train"] >= 3
    assert min(counts["val"], counts["test"]) >= 2
    assert source.splits == read(tmp_path, seed=3).splits != read(tmp_path, seed=4).splits


def test_split_table_chooses_the_classes(tmp_path: Path) -> None:
    write_classes(tmp_path / "images", "a", "b/c", "unused")
    table = tmp_path / "splits.csv"
    table.write_text('\ufeffsplit,class,note\r\ntest,a,"two\r\nlines"\r\n\r\ntrain,b/c,\r\n', encoding="utf-8")
    source = read(tmp_path / "images", table)
    assert source.classes == ["a", "a", "b/c", "b/c"]
    assert source.splits == ["test", "test", "train", "train"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", r"splits\.csv: expected the column 'split', got no header"),
        (
            "split:class\n",
            r"expected the columns 'split', 'class', separated by commas, semicolons or tabs, got only 'split:class'",
        ),
        ("split;class\ntrain;a;b\n", r"line 2: expected 2 cells .*, got 3; .* quote cells that hold a semicolon"),
        ('split\tclass\ntrain\t"a\n', r"line 2: expected tab-separated values"),
        ("split,class,split\n", r"expected every column once"),
        ("split,class\ntrain,a\n\nholdout,b\n", r"line 4: expected the split train or val or test, got 'holdout'"),
        ("split,class\ntrain,a\ntrain, \n", r"line 3: expected a class, got an empty cell"),
        ("split,class\ntrain,a\ntest,a\n", r"line 3: expected every class once, got 'a' again"),
        ('split,class\ntrain,"a\nb"\n\nholdout,b\n', r"line 5: expected the split train or val or test"),
        ("split,class\ntrain,a,b\n", r"line 2: expected 2 cells as in the header, got 3"),
        ('split,class\ntrain,"a\n', r"line 2: expected comma-separated values"),
        ("split,class\ntest,a\n", r"expected classes in the split 'train', got none"),
        ("split,class\ntrain,z\n", r"expected images of the class 'z' in .*, got none"),
        (b"split,class\ntrain,\xff\n", r"expected text in UTF-8"),
        (None, r"data\.table: expected a readable file at .*splits\.csv"),
    ],
)
def test_bad_split_table(tmp_path: Path, content: str | bytes | None, expected: str) -> None:
    write_classes(tmp_path / "images", "a", "b")
    table = tmp_path / "splits.csv"
    if content is not None:
        table.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(MelaError, match=expected) as caught:
        read(tmp_path / "images", table)
    assert "\n" not in str(caught.value)
    assert "splits.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        (None, r"data\.root: expected a folder at .*root, got nothing"),
        ("a/c/readme.txt", r"expected at least one image .* in folder 'a/c', got none"),
        ("stray.png", r"got the image 'stray\.png' in no folder"),
    ],
)
def test_bad_folder(tmp_path: Path, added: str | None, expected: str) -> None:
    root = tmp_path / "root"
    if added is not None:
        write_classes(root, "a/b", "b")
        save(tmp_path / "x.png")
        (root / added).parent.mkdir(exist_ok=True)
        (tmp_path / "x.png").rename(root / added)
    with pytest.raises(MelaError, match=expected):
        read(root)


def test_links_must_stay_below_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_classes(root, "a", "b")
    save(tmp_path / "outside.png")
    inside = root / "a" / "9.png"
    inside.symlink_to(root / "a" / "0.png")
    assert len(read(root)) == 5
    inside.unlink()
    inside.symlink_to(tmp_path / "outside.png")
    with pytest.raises(MelaError, match=r"stay below this folder, got 'a/9\.png' -> "):
        read(root)
    inside.unlink()
    inside.symlink_to(root, target_is_directory=True)
    with pytest.raises(MelaError, match=r"expected real folders, got the symbolic link 'a/9\.png'"):
        read(root)


def test_links_of_benchmarks_must_stay_in_their_folder(tmp_path: Path) -> None:
    save(tmp_path / "outside.png")
    save(tmp_path / "root" / "0.png")
    (tmp_path / "root" / "1.png").symlink_to("0.png")
    assert list_images(tmp_path / "root") == ["0.png", "1.png"]
    (tmp_path / "root" / "2.png").symlink_to(tmp_path / "outside.png")
    with pytest.raises(MelaError, match=r"stay below this folder, got '2\.png' -> "):
        list_images(tmp_path / "root")


def test_a_table_may_not_be_a_link_to_outside(project: Path) -> None:
    write_classes(Path("mine"), "a", "b")
    Path("secret").write_text("split,class\ntrain,a\n")
    Path("mine/split.csv").symlink_to(Path("secret").resolve())
    for name in ("folder", "tasks"):
        change(PARAMS, {"data.name": name, "data.root": "mine", "data.table": "split.csv"})
        with pytest.raises(MelaError, match=r"^data\.table: expected a file below data\.root \(mine\), got 'split"):
            open_source(DataParams.read(), shots=1)


def test_root_may_be_a_link(tmp_path: Path) -> None:
    write_classes(tmp_path / "real", "a", "b")
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    source = read(tmp_path / "link")
    assert source.sources == ["a/0.png", "a/1.png", "b/0.png", "b/1.png"]


@pytest.mark.parametrize(
    ("sizes", "fractions", "expected"),
    [
        ([1] * 3, (0.64, 0.16, 0.2), [1, 1, 1]),
        ([1] * 2, (0.2, 0.2, 0.6), [1, 0, 1]),
        ([1], (0.2, 0.2, 0.6), [1, 0, 0]),
        ([1] * 8, (0.64, 0.16, 0.2), [5, 1, 2]),
        ([1] * 5, (1.0, 0.0, 0.0), [5, 0, 0]),
        ([10, 1, 1], (0.2, 0.2, 0.6), [10, 1, 1]),
        ([5, 4], (0.5, 0.0, 0.5), [5, 0, 4]),
    ],
)
def test_split_by_fractions(sizes: list[int], fractions: tuple[float, ...], expected: list[int]) -> None:
    named = {f"item{i}": size for i, size in enumerate(sizes)}
    split_of = split_by_fractions(named, fractions, seed=0)
    got = Counter[str]()
    for name, split in split_of.items():
        got[split] += named[name]
    assert [got[split] for split in ("train", "val", "test")] == expected
    assert split_by_fractions(dict(reversed(named.items())), fractions, seed=0) == split_of


@pytest.mark.parametrize(
    "fractions", [(1.0,), (0.5, 0.5, 0.5), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1), (float("nan"), 0.5, 0.5)]
)
def test_bad_fractions(fractions: tuple[float, ...]) -> None:
    with pytest.raises(MelaError, match=r"data\.split_fractions: expected three numbers .*got \["):
        split_by_fractions({"a": 1}, fractions, seed=0)


def palette(transparent: int | None) -> Image.Image:
    image = Image.new("P", (1, 1), 1)
    image.putpalette([0, 0, 0, 200, 100, 50])
    if transparent is not None:
        image.info["transparency"] = transparent
    return image


@pytest.mark.parametrize(
    ("image", "name", "expected"),
    [
        (Image.new("L", (1, 1), 77), "a.png", 77),
        (Image.new("1", (1, 1), 1), "a.png", 255),
        (Image.fromarray(np.array([[65535]], dtype=np.uint16)), "a.png", 255),
        (Image.fromarray(np.array([[128 * 257]], dtype=np.uint16)), "a.tiff", 128),
        (Image.new("RGB", (1, 1), (1, 2, 3)), "a.bmp", (1, 2, 3)),
        (Image.new("RGBA", (1, 1), (200, 100, 0, 0)), "a.png", (0, 0, 0)),
        (Image.new("RGBA", (1, 1), (200, 100, 0, 255)), "a.webp", (200, 100, 0)),
        (Image.new("RGBA", (1, 1), (200, 100, 0, 51)), "a.png", (40, 20, 0)),
        (Image.new("LA", (1, 1), (200, 51)), "a.png", (40, 40, 40)),
        (palette(None), "a.png", (200, 100, 50)),
        (palette(1), "a.png", (0, 0, 0)),
        (palette(0), "a.gif", (200, 100, 50)),
        (Image.new("CMYK", (1, 1), (0, 0, 0, 255)), "a.jpg", (0, 0, 0)),
    ],
    ids=lambda value: f"{value.mode}" if isinstance(value, Image.Image) else None,
)
def test_every_kind_of_pixel(tmp_path: Path, image: Image.Image, name: str, expected: object) -> None:
    image.save(tmp_path / name, lossless=True)
    opened = open_image(tmp_path / name, name)
    assert opened.mode in ("1", "L", "RGB")
    assert opened.getpixel((0, 0)) == expected


def test_exif_orientation(tmp_path: Path) -> None:
    image = Image.fromarray(np.array([[10, 20]], dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = 6
    image.save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(np.asarray(open_image(tmp_path / "a.png", "a.png")), [[10], [20]])


def animated(path: Path) -> None:
    frames = [Image.new("L", (2, 2), grey) for grey in (0, 255)]
    frames[0].save(path, save_all=True, append_images=frames[1:])


@pytest.mark.parametrize(
    ("name", "write", "expected"),
    [
        ("a.png", lambda path: None, "FileNotFoundError"),
        ("a.png", lambda path: path.write_text("text"), "UnidentifiedImageError"),
        ("a.png", lambda path: path.touch(), "UnidentifiedImageError"),
        ("a.png", lambda path: path.mkdir(), "IsADirectoryError"),
        ("a.png", truncated, "truncated"),
        ("a.jpg", truncated, "truncated"),
        ("a.gif", animated, "expected a still image, got 2 frames"),
        ("a.tif", animated, "expected a still image, got 2 frames"),
        ("a.tif", lambda path: Image.new("F", (2, 2)).save(path), "8 or 16 bits per channel, got 32"),
        ("a.tif", lambda path: Image.new("I", (2, 2)).save(path), "8 or 16 bits per channel, got 32"),
    ],
)
def test_bad_image(tmp_path: Path, name: str, write: Callable[[Path], object], expected: str) -> None:
    write(tmp_path / name)
    with pytest.raises(MelaError, match=expected) as caught:
        open_image(tmp_path / name, f"some/{name}")
    assert str(caught.value).startswith(f"image 'some/{name}': expected ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("limit", [3, 1])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_too_many_pixels(tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow only warns up to twice its limit, and raises beyond; both are refused here."""
    save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(MelaError, match=r"image 'a\.png': .*(2 x 2|DecompressionBombError)"):
        open_image(tmp_path / "a.png", "a.png")
