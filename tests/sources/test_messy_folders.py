"""Folders of photographs as people have them: `mela data check` and the stage images agree, and name every file."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from mela.io import schemas, store
from mela.sources import image_kinds as kinds
from mela.sources.folder_tree import Unused, unused_files, unused_in_words
from mela.sources.image_files import open_image
from stages.common import paths
from tests.helpers.folders import (
    check,
    contents,
    noise,
    rights_of,
    socket_at,
    told_by_the_stage,
    truncated,
    without_rights,
)


class Wrong(NamedTuple):
    """What is wrong with the folder, and how the message begins."""

    spoil: Callable[[Path], object]
    message: str


def broken(link: str, target: str) -> Wrong:
    def spoil(root: Path) -> None:
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).symlink_to(target)

    found = f"expected a file behind the link '{link}', got none at '{target}'"
    return Wrong(spoil, f"HERE: {found}; remove the link, or put back what it leads to")


def no_file(make: Callable[[Path], object], name: str, kind: str) -> Wrong:
    message = f"HERE: expected files and folders, got the {kind} '{name}', which cannot be read; remove it"
    return Wrong(lambda root: make(root / name), message)


SAME_PIXELS = (
    "expected one label for the same pixels in one task, got another one for 'p0/l0/1.png'; remove one of the two "
)
SAME_PIXELS += "files, or correct its label"
WRONG = {
    "a broken link": broken("p0/l0/9.png", "nowhere.png"),
    "a broken link that is hidden": broken("p0/.h", "nowhere"),
    "a broken link in a hidden folder": broken(".git/deep/h", "no"),
    "a file by which DVC ignores others": Wrong(
        lambda root: (root / "p0/.dvcignore").write_text("*.tmp"),
        "HERE: expected no file .dvcignore in the data, got 'p0/.dvcignore', at which DVC stops; move it elsewhere",
    ),
    "a link to itself": broken("p0/l0/9.png", "9.png"),
    "a named pipe": no_file(os.mkfifo, "p0/l0/pipe", "named pipe (FIFO)"),
    "a named pipe with the name of an image": no_file(os.mkfifo, "p0/l0/pipe.png", "named pipe (FIFO)"),
    "a socket": no_file(socket_at, "p0/l0/s", "socket"),
    "a name that is no UTF-8": Wrong(
        lambda root: (root / os.fsdecode(b"p0/l0/.\xff")).touch(),
        r"HERE: expected file names in UTF-8, got 'p0/l0/.\udcff'; rename it",
    ),
    "an empty folder": Wrong(
        lambda root: (root / "p0/l9").mkdir(),
        "HERE: expected at least one image (IMAGES) in folder 'p0/l9', got none; add images or remove the folder",
    ),
    "a truncated JPEG": Wrong(
        lambda root: truncated(root / "p0/l0/9.jpg"),
        "image 'p0/l0/9.jpg': expected a readable image, got OSError: image file is truncated",
    ),
    "an animated GIF": Wrong(
        lambda root: noise(1).save(root / "p0/l0/9.gif", save_all=True, append_images=[noise(2)]),
        "image 'p0/l0/9.gif': expected a still image, got 2 frames; keep one of them",
    ),
    "an image in no label": Wrong(
        lambda root: noise(5).save(root / "p0/9.png"),
        "mine: expected <task>/<local label>/<image>, got 'p0/9.png'; move the file, or describe the tasks in a table "
        "and set data.table",
    ),
    "a link to an image of the same label": Wrong(
        lambda root: (root / "p0/l0/9.png").symlink_to("1.png"),
        "mine, folder 'p0/l0': expected an image once in task 'p0', got 'p0/l0/9.png', a link to the same file as "
        "'p0/l0/1.png'; remove the link",
    ),
    "a link to an image of another label of the person": Wrong(
        lambda root: (root / "p0/l0/9.png").symlink_to("../l1/1.png"),
        "mine, folder 'p0/l1': expected an image under one label in task 'p0', got 'p0/l0/9.png', a link to the same "
        "file as 'p0/l1/1.png'; keep it under the label that is right",
    ),
    "one image of a person under a label that has no other": Wrong(
        lambda root: ((root / "p0/l2").mkdir(), Image.open(root / "p0/l0/1.png").save(root / "p0/l2/9.bmp")),
        f"image 'p0/l2/9.bmp': {SAME_PIXELS}",
    ),
    "one image under two labels of a person": Wrong(
        lambda root: Image.open(root / "p0/l0/1.png").save(root / "p0/l1/9.bmp"), f"image 'p0/l1/9.bmp': {SAME_PIXELS}"
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_by_the_check_and_by_the_stage(
    case: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, message = WRONG[case]
    spoil(mine)
    message = message.replace("HERE", str(mine.resolve())).replace("IMAGES", " ".join(kinds.suffixes()))
    (error,) = check("mine").errors()
    told = told_by_the_stage(capsys)
    assert error.startswith(message)
    assert told == f"error: {error}"


@pytest.mark.slow
@pytest.mark.parametrize("path", ["p0/l0/1.png", "p0/l0", "p0/.hidden", "p0/notes.txt"])
def test_what_may_not_be_read_is_told_by_the_check_and_by_the_stage(path: str, mine: Path) -> None:
    target = mine / path
    if not target.exists():
        target.write_text("words")
    with rights_of(target, 0):
        checked = without_rights("mela", "data", "check", "mine")
        staged = without_rights("stages.images")
    message = f"error: {target.resolve()}: Permission denied; check who may read and write it"
    assert message in checked.stdout.splitlines()
    assert (checked.returncode, staged.returncode) == (1, 1)
    assert staged.stderr.splitlines()[-1] == message


GOOD: dict[str, Callable[[Path], object]] = {
    "CMYK": lambda folder: noise(50).convert("CMYK").save(folder / "cmyk.jpg"),
    "16-bit PNG": lambda folder: Image.fromarray(np.arange(400, dtype=np.uint16).reshape(20, 20) * 160).save(
        folder / "deep.png"
    ),
    "PPM": lambda folder: noise(51).save(folder / "0.ppm"),
    "PGM": lambda folder: noise(52).convert("L").save(folder / "0.PGM"),
    "AVIF": lambda folder: noise(53).save(folder / "0.avif"),
    "no suffix": lambda folder: noise(54).save(folder / "IMG_0001", "jpeg"),
    "a suffix that lies": lambda folder: noise(55).save(folder / "IMG_0002.png", "jpeg"),
    "a line break in the name": lambda folder: noise(56).save(folder / "a\nb.png"),
    "a name of another script": lambda folder: noise(57).save(folder / "Grüße 写真 🍄.png"),
    "a link to another image of the folder": lambda folder: (folder / "link.png").symlink_to("../../p1/l1/0.png"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", GOOD)
def test_what_can_be_read_is_read_by_both(case: str, mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    GOOD[case](mine / "p0/l0")
    done = check("mine")
    assert (done.status, done.errors()) == (0, [])
    assert "not used" not in done.out
    told_by_the_stage(capsys)
    images = 24 + (not case.startswith("a link"))
    assert len(store.open_images(paths.IMAGES)) == images
    assert f"  images       {images}, " in done.out


@pytest.mark.parametrize("format", kinds.FORMATS)
def test_every_kind_of_image_is_known_by_its_content(format: str, tmp_path: Path) -> None:
    noise(0).save(tmp_path / "image", format)
    assert kinds.is_image(tmp_path / "image")
    (tmp_path / "image").rename(tmp_path / ".image")
    assert not kinds.is_image(tmp_path / ".image")
    assert all(kinds.is_image_name(f"X{suffix.upper()}") for suffix in SURE)


SURE = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".avif", ".ppm", ".pgm", ".heic"}


def test_heic_is_read_with_its_package_and_named_without(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    heif = pytest.importorskip("pillow_heif")
    heif.from_pillow(noise(60, (64, 64))).save(mine / "p0/l0/IMG_1.HEIC")
    heif.from_pillow(noise(61, (64, 64))).save(mine / "p0/l0/IMG_2")
    assert check("mine").status == 0
    assert f"{26} of" in told_by_the_stage(capsys)
    assert open_image(mine / "p0/l0/IMG_1.HEIC", "").size == (64, 64)
    # as if the package were not there
    monkeypatch.setattr(kinds, "why_no_heif", lambda: kinds.NEEDS_HEIF)
    done = check("mine")
    assert done.status == 0
    assert "  images       24, " in done.out
    assert f"  not used     1 file: {kinds.NEEDS_HEIF} ('p0/l0/IMG_1.HEIC')" in done.out.splitlines()
    assert f"images: not used: 1 file: {kinds.NEEDS_HEIF} ('p0/l0/IMG_1.HEIC')" in told_by_the_stage(capsys)
    rows = ["task_id,local_label,path", *(f"t,{n % 2},p0/l{n % 2}/{n // 2}.png" for n in range(6))]
    (mine / "tasks.csv").write_text("\n".join([*rows, "t,1,p0/l0/IMG_1.HEIC"]))
    (error,) = check("mine").errors()
    assert error.startswith("mine/tasks.csv, line 8: expected the path of an image (.avif ")
    assert error.endswith(f"got 'p0/l0/IMG_1.HEIC' ({kinds.NEEDS_HEIF}); convert the file")


def test_a_package_for_heic_that_is_broken_is_told(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine / "p0/l0/IMG_1.HEIC").write_bytes(b"x")
    (mine / "p0/l0/IMG_2").write_bytes(b"x")
    Path("packages/pillow_heif").mkdir(parents=True)
    Path("packages/pillow_heif/__init__.py").write_text("raise ImportError('libheif.so.1: no such file')")
    monkeypatch.syspath_prepend(Path("packages").resolve())
    monkeypatch.delitem(sys.modules, "pillow_heif", raising=False)
    kinds.why_no_heif.cache_clear()
    try:
        done, said = check("mine"), told_by_the_stage(capsys)
    finally:
        kinds.why_no_heif.cache_clear()
    assert (done.status, done.err) == (0, "")
    line = (
        "1 file: HEIC, and the package pillow-heif cannot be imported (ImportError: libheif.so.1: no such file); "
        "install it again ('p0/l0/IMG_1.HEIC')"
    )
    assert f"  not used     {line}" in done.out.splitlines()
    assert f"images: not used: {line}" in said.splitlines()


CLUTTER = {
    ".DS_Store": "hidden",
    ".git": "hidden folder",
    "more.zip": "an archive (.zip), to be unpacked first",
    "p0/.hidden.png": "hidden",
    "p0/Thumbs.db": "no image by its suffix .db",
    "p1/l0/notes.txt": "no image by its suffix .txt",
    "p2/README": "no suffix, and no image inside",
}


def test_files_that_are_not_used_are_named(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (mine / ".git").mkdir()
    for name in (".git/config", *CLUTTER.keys() - {".git"}):
        (mine / name).write_text("words")
    shutil.copy(mine / "p0/l0/0.png", mine / "p0/.hidden.png")
    assert unused_files(mine, [], table=None) == sorted(Unused(path=name, reason=why) for name, why in CLUTTER.items())
    done = check("mine")
    assert done.status == 0
    lines = [
        "2 files: hidden ('.DS_Store', 'p0/.hidden.png')",
        "1 file: an archive (.zip), to be unpacked first ('more.zip')",
        "1 file: hidden folder ('.git')",
        "1 file: no image by its suffix .db ('p0/Thumbs.db')",
        "1 file: no image by its suffix .txt ('p1/l0/notes.txt')",
        "1 file: no suffix, and no image inside ('p2/README')",
    ]
    assert "\n".join(["  not used     " + lines[0], *("               " + line for line in lines[1:])]) in done.out
    said = told_by_the_stage(capsys)
    assert [line.removeprefix("images: not used: ") for line in said.splitlines() if "not used" in line] == lines


def test_many_files_of_a_kind_are_a_count_and_three_examples() -> None:
    many = [Unused(path=f"{n}.txt", reason="no image by its suffix .txt") for n in range(5)]
    assert list(unused_in_words(many)) == ["5 files: no image by its suffix .txt ('0.txt', '1.txt', '2.txt', ...)"]


def test_images_that_the_table_leaves_out_are_named(mine: Path) -> None:
    rows = ["task_id,local_label,path", *(f"t,{n % 2},p0/l{n % 2}/{n // 2}.png" for n in range(4))]
    (mine / "tasks.csv").write_text("\n".join(rows))
    done = check("mine")
    assert "  not used     20 files: not in tasks.csv ('p0/l0/2.png', 'p0/l1/2.png', 'p1/l0/0.png', ...)" in done.out


def test_a_repeat_under_one_label_is_no_contradiction(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor is one under labels of two people, who may call the same image what they want."""
    shutil.copy(mine / "p0/l0/0.png", mine / "p0/l0/again.png")
    shutil.copy(mine / "p0/l0/0.png", mine / "p1/l1/again.png")
    done = check("mine")
    assert (done.status, done.errors()) == (0, [])
    assert any(warning.startswith("1 image is there several times") for warning in done.warnings())
    assert "images: 26 of" in told_by_the_stage(capsys)


def test_what_moved_since_the_last_run_is_told(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "changed their split" not in told_by_the_stage(capsys)
    assert "  moved " not in check("mine").out
    index = store.read_table(paths.INDEX, schemas.INDEX)
    before = dict(zip(index["source"].str.partition("/")[0], index["split"], strict=True))
    other = {"val": "test", "test": "val"}
    after = {name: other[split] for name, split in sorted(before.items()) if split in other}
    (mine / "splits.csv").write_text("task,split\n" + "".join(f"{n},{s}\n" for n, s in after.items()))
    named = ", ".join(f"{name!r} from {before[name]} to {after[name]}" for name in after)
    line = f"2 of 4 tasks or classes changed their split since the last run: {named}; "
    done = check("mine")
    assert f"  moved        {line}" in done.out
    assert "drawn, 2 of them pinned by splits.csv: " in done.out
    assert "not used" not in done.out
    assert f"images: {line}" in told_by_the_stage(capsys)
    assert "changed their split" not in told_by_the_stage(capsys)
    assert "  moved " not in check("mine").out
    # another folder of data is another matter, and so is a note that is damaged
    shutil.copytree(mine, "others")
    (mine / "splits.csv").unlink()
    Path("others/splits.csv").unlink()
    assert "  moved " in check("mine").out
    assert "  moved " not in check("others").out
    Path(".checkpoints/splits.json").write_text("{}")
    assert "  moved " not in check("mine").out


def test_a_contradiction_leaves_what_was_there(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told_by_the_stage(capsys)
    before = contents(Path("data"))
    shutil.copy(mine / "p0/l0/0.png", mine / "p0/l1/again.png")
    assert told_by_the_stage(capsys).startswith("error: image 'p0/l1/again.png': expected one label")
    assert contents(Path("data")) == before


def test_all_problems_of_files_are_told_at_once(mine: Path) -> None:
    same_names = {case for case in WRONG if case.startswith(("a link to", "a named pipe with"))}
    for case in WRONG.keys() - same_names:
        WRONG[case].spoil(mine)
    assert len(check("mine", "--all").errors()) == len(WRONG) - 4 == len(WRONG) - len(same_names)
