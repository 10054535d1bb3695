"""What is wrong with images, their folders or their split table ends in one line that says what to do about it."""

import os
import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mela.io import store
from mela.params import PARAMS
from stages.common import paths
from tests.helpers.bad_input import Case, Spoil, cut, fails, folders, one_line_each, params, picture, split_table
from tests.helpers.project import run_stages


def huge() -> None:
    """A PNG of a few bytes that says it has 40,000 x 40,000 pixels."""
    picture("class 0/0.png")
    content = bytearray(Path("mine/class 0/0.png").read_bytes())
    content[16:24] = struct.pack(">II", 40_000, 40_000)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    Path("mine/class 0/0.png").write_bytes(content)


def replaced(content: bytes) -> Spoil:
    return lambda: Path("mine/class 0/0.png").write_bytes(content)


def animated() -> None:
    frames = [Image.new("L", (20, 20), shade) for shade in (0, 90, 200)]
    frames[0].save("mine/class 0/0.gif", save_all=True, append_images=frames[1:])


UNREADABLE = "image 'class 0/0.png': expected a readable image, got .*; replace the file"


def wrong(spoil: Spoil, message: str = UNREADABLE) -> Case:
    """What is wrong with images of six classes, and what is said of it."""
    return Case("images", folders(spoil), message)


def split(text: str, message: str) -> Case:
    """A table that splits the six classes, and what follows its name in the message."""
    return wrong(split_table(text), f"mine/split.csv{message}")


def root(path: str, found: str) -> Case:
    """A root that is no folder, and what is there."""
    spoil = params(data__name="folder", data__root=path)
    return Case("images", spoil, f"data.root: expected a folder at {path}, got {found}")


CASES: dict[str, Case] = {
    "no folder": root("nowhere", "nothing; set data.root to the folder of images"),
    "a file for a folder": root("params.yaml", "a file; set data.root .*"),
    "no benchmark": Case(
        "images", params(data__name="cifar_fs", data__root="nowhere"), "data.root: expected .*nowhere.*"
    ),
    "an empty folder": wrong(
        lambda: Path("mine/class 7").mkdir(),
        r".*mine: expected at least one image \(.*\) in folder 'class 7', got none; add images or remove the folder",
    ),
    "an image in no folder": wrong(
        lambda: picture("0.png"),
        ".*mine: expected one folder per class, got the image '0.png' in no folder; move it .*",
    ),
    "a truncated image": wrong(lambda: cut(200)(Path("mine/class 0/0.png"))),
    "an empty file": wrong(replaced(b"")),
    "text": wrong(replaced(b"hello")),
    "random bytes": wrong(replaced(np.random.default_rng(0).bytes(500))),
    "a PNG's head alone": wrong(replaced(b"\x89PNG\r\n\x1a\n")),
    "an animation": wrong(animated, "image 'class 0/0.gif': expected a still image, got 3 frames; keep one of them"),
    "32 bits a channel": wrong(
        lambda: picture("class 0/9.tif", mode="F"),
        "image 'class 0/9.tif': expected 8 or 16 bits per channel, got 32; save it with 8",
    ),
    "a decompression bomb": wrong(huge, "image 'class 0/0.png': expected .*40000.*|.*1600000000 pixels.*"),
    "a link that leads out": wrong(
        lambda: Path("mine/class 0/9.png").symlink_to(PARAMS.resolve()),
        ".*mine: expected links that stay below this folder, got 'class 0/9.png' -> '.*params.yaml'; put a copy .*",
    ),
    "a folder that is a link": wrong(
        lambda: Path("mine/class 9").symlink_to(Path("mine/class 0").resolve()),
        ".*mine: expected real folders, got the symbolic link 'class 9'; put a copy in its place",
    ),
    "a name that is no UTF-8": wrong(
        lambda: Path(os.fsdecode(b"mine/class 0/\xff.png")).write_bytes(b""),
        r".*mine: expected file names in UTF-8, got 'class 0/\\udcff.png'; rename it",
    ),
    "a name with a line break": wrong(
        lambda: Path("mine/class 0/a\nb.png").write_bytes(b""),
        r"image 'class 0/a\\nb.png': expected a readable image, got .*; replace the file",
    ),
    "a table that leaves the root": Case(
        "images",
        folders(data__table="../split.csv"),
        "params.yaml: data: table: '../split.csv' is no path below data.root; .*",
    ),
    "a table that is not there": Case(
        "images",
        folders(data__table="split.csv"),
        "data.table: expected a readable file at mine/split.csv, got No such file or directory; set data.table",
    ),
    "a split that nobody knows": split(
        "split,class\ntraining,class 0\n",
        ", line 2: expected the split train or val or test, got 'training'; correct it",
    ),
    "a class that is not there": split(
        "split,class\ntrain,class 0\ntrain,class 8\n",
        ": expected images of the class 'class 8' in mine, got none; .*",
    ),
    "a class in two splits": split(
        "split,class\ntrain,class 0\ntest,class 0\n",
        ", line 3: expected every class once, got 'class 0' again; remove the row",
    ),
    "no training classes": split(
        "split,class\ntest,class 0\n", ": expected classes in the split 'train', got none; add them"
    ),
    "a row that is too short": split("split,class\ntrain\n", ", line 2: expected 2 cells as in the header, got 1; .*"),
    "a quote that does not end": split(
        'split,class\ntrain,"class 0\n', ", line 2: expected comma-separated values, got .*; fix it"
    ),
}


test_what_is_bad_ends_in_one_line = one_line_each(CASES)


@pytest.mark.parametrize("mode", ["I;16", "CMYK", "P", "RGBA", "LA", "1"])
def test_unusual_images_are_converted(mode: str, project: Path) -> None:
    folders()()
    if mode in ("P", "1", "LA"):
        Image.open(picture("class 0/9.png")).convert(mode).save("mine/class 0/9.png")
    else:
        picture("class 0/9.tif" if mode in ("I;16", "CMYK") else "class 0/9.png", mode=mode)
    run_stages("images")
    images = store.open_images(paths.IMAGES)
    assert len(images) == 25
    assert (images.reshape(25, -1).std(axis=1) > 20).all()


def test_a_single_image_of_a_class_is_told_where_tasks_are_drawn(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folders(lambda: picture("class 9/0.png"), tasks__ways=2, tasks__shots=1, tasks__queries=2)()
    run_stages("images")
    message = r"tasks.shots \+ tasks.queries: \w+ class 'class 9' has only 1 of the 3 images .*"
    fails("manifest", message, monkeypatch, capfd)


def test_an_empty_split_is_told_where_tasks_are_drawn(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"train,class {number}\n" for number in range(6))
    folders(split_table(f"split,class\n{rows}"), tasks__shots=1, tasks__queries=2)()
    run_stages("images")
    fails("manifest", "tasks.val is 4, but no val class has images; .*", monkeypatch, capfd)


def test_a_picture_in_two_splits_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under another name; it may be what somebody wants, so it is no error."""
    rows = "".join(f"{'train' if number else 'test'},class {number}\n" for number in range(6))
    folders(split_table(f"split,class\n{rows}"))()
    shutil.copy("mine/class 0/1.png", "mine/class 3/1.png")
    run_stages("images")
    assert capsys.readouterr().out.startswith(
        "images: 1 image is in several splits, such as 'class 0/1.png' (test) and 'class 3/1.png' (train); "
    )
