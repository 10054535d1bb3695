"""Files that cannot be read are moved away and back, and lists of what was found are written."""

import csv
import errno
import os
import shutil
import stat
from pathlib import Path

import pytest
from PIL import Image

from mela.cli import data
from mela.errors import MelaError
from mela.io.reading_errors import AboutFile
from mela.sources.check.aside import _move, put_back, set_aside
from mela.sources.check.lists import read_list, write_list
from tests.helpers.folders import check, contents, noise, socket_at, told_by_the_stage, truncated

AWAY = Path("away")


def aside() -> dict[str, object]:
    """What was moved away, without the list of it."""
    return {name: content for name, content in contents(AWAY).items() if name != "moved.csv"}


def moved(column: str = "path") -> list[str]:
    """A column of that list."""
    return [row[column] for row in rows(AWAY / "moved.csv")]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        return list(csv.DictReader(file))


NAMES = ["a\rb.png", "a\r=1+1.png", "=x\ry.png", "a\r\nb.png", '"', "a,b", "", 'a\n,;"b.png', "=1+1.png", "-", "'="]
NAMES += ["@x", os.fsdecode(b"\xff")]


@pytest.mark.parametrize("name", NAMES)
def test_lists_of_files_hold_names_of_all_kinds(name: str, tmp_path: Path) -> None:
    write_list(tmp_path / "list.csv", ("path", "reason"), [(name, "why"), ("next.png", name)])
    assert read_list(tmp_path / "list.csv", ("path", "reason")) == [(name, "why"), ("next.png", name)]
    # as spreadsheets take rows: none begins within a cell
    found = rows(tmp_path / "list.csv")
    assert found[0]["reason"] == "why"
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in found for cell in row.values())


@pytest.fixture
def messy(mine: Path) -> Path:
    """Photographs of which some cannot be read, with names as bad as names get."""
    truncated(mine / "p0/l0/a.jpg")
    (mine / "p0/l0/=1+1.png").write_bytes(b"words")
    (mine / "p1/l1/a\nb.png").write_bytes(b"words")
    (mine / "p1/l1" / os.fsdecode(b"\xff.png")).write_bytes(b"words")
    (mine / "p2/l0/broken.png").symlink_to("nowhere.png")
    # its target goes first, and leaves it broken
    (mine / "p2/l1/link.png").symlink_to("../../p0/l0/a.jpg")
    (mine / "p3/l0/out.png").symlink_to(Path("params.yaml").resolve())
    (mine / "p3/.dvcignore").write_text("*.tmp")
    return mine


BAD = ["p0/l0/=1+1.png", "p0/l0/a.jpg", "p1/l1/a\nb.png", "p1/l1/\udcff.png", "p2/l0/broken.png", "p2/l1/link.png"]
BAD += ["p3/l0/out.png", "p3/.dvcignore"]


def test_what_cannot_be_read_is_set_aside_and_put_back(messy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, params = contents(messy), Path("params.yaml").read_bytes()
    assert check("mine").status == 1
    done = check("mine", "--set-aside", AWAY)
    assert (done.status, done.errors()) == (0, [])
    undo = "away/moved.csv says why, and `mela data put-back mine away` undoes it"
    assert f"set aside: 8 files that cannot be read; {undo}" in done.out.splitlines()
    assert told_by_the_stage(capsys).endswith("images: 24 of 16 x 16 x 3, 12 train, 6 test, 6 val\n")
    kept = {name: content for name, content in before.items() if name not in BAD}
    assert contents(messy) == kept
    assert aside() == {name: before[name] for name in BAD}
    assert Path("params.yaml").read_bytes() == params
    listed = rows(AWAY / "moved.csv")
    assert sorted(row["path"] for row in listed) == sorted(BAD)
    assert all(row["moved_to"] == row["path"] for row in listed)
    assert all("; " in row["reason"] and "expected" in row["reason"] for row in listed)
    data.put_back(messy, AWAY)
    assert capsys.readouterr().out == "mine: 8 files are back\n"
    assert contents(messy) == before
    assert not AWAY.exists()


def test_nothing_is_moved_where_all_can_be_read(mine: Path) -> None:
    done = check("mine", "--set-aside", AWAY)
    assert done.status == 0
    assert "set aside: 0 files that cannot be read\n" in done.out
    assert not AWAY.exists()


def test_the_command_that_undoes_it_can_be_pasted(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (mine / "p0/l0/9.png").write_bytes(b"words")
    done = check("mine", "--set-aside", "my files; old")
    assert "set aside: 1 file that cannot be read; " in done.out
    assert "`mela data put-back mine 'my files; old'` undoes it" in done.out
    data.put_back(mine, Path("my files; old"))
    assert capsys.readouterr().out == "mine: 1 file is back\n"


def test_a_second_call_adds_to_the_first_and_overwrites_nothing(mine: Path) -> None:
    for content in (b"one", b"two", b"three"):
        (mine / "p0/l0/9.png").write_bytes(content)
        assert check("mine", "--set-aside", AWAY).status == 0
    expected = {"p0/l0/9.png": b"one", "p0/l0/9 (2).png": b"two", "p0/l0/9 (3).png": b"three"}
    assert aside() == expected
    assert moved("moved_to") == list(expected)
    # all three come from the same place
    done, problems = put_back(mine, AWAY)
    assert (len(done), len(problems)) == (1, 2)
    assert problems[0] == "mine/p0/l0/9.png: expected nothing in this place, got a file; move it away"
    assert (mine / "p0/l0/9.png").read_bytes() == b"one"
    assert moved("moved_to") == ["p0/l0/9 (2).png", "p0/l0/9 (3).png"]


def test_images_that_are_wrong_in_another_way_stay(mine: Path) -> None:
    """An image in the wrong folder, or under two labels, can be read."""
    noise(5).save(mine / "p0/9.png")
    Image.open(mine / "p0/l0/1.png").save(mine / "p0/l1/9.bmp")
    before = contents(mine)
    done = check("mine", "--set-aside", AWAY)
    assert done.status == 1
    assert len(done.errors()) == 2
    assert contents(mine) == before


@pytest.mark.parametrize(
    ("folder", "message"),
    [
        ("mine/away", r"--set-aside: expected a folder outside of the data \(mine\), got mine/away; name another one"),
        ("params.yaml", "--set-aside: expected a folder, got the file params.yaml; name another one"),
        (".", r"--set-aside: expected a new folder, got \., which holds other files; name another one"),
    ],
)
def test_folders_that_are_refused(folder: str, message: str, messy: Path) -> None:
    before = contents(messy)
    done = check("mine", "--set-aside", folder)
    assert done.status == 1
    with pytest.raises(MelaError, match=message):
        set_aside(messy, [], Path(folder))
    assert contents(messy) == before


def test_nothing_leaves_the_folders_by_links_or_lists(mine: Path) -> None:
    outside = Path("outside")
    outside.mkdir()
    (outside / "1.png").write_bytes(b"words")
    # a problem's path that goes through a link
    (mine / "p0/link").symlink_to(outside.resolve())
    assert set_aside(mine, [AboutFile("x; y", "p0/link/1.png")], AWAY) == []
    AWAY.mkdir()
    (AWAY / "deep").symlink_to(outside.resolve())
    header, root = ("path", "moved_to", "reason", "root"), str(mine.resolve())
    (AWAY / "1.png").write_bytes(b"x")
    outwards = r"moved\.csv: expected a path below its folder, such as 'a/b\.png', got "
    for path, moved_to, message in (
        ("p0/9.png", "../outside/1.png", outwards),
        ("../x.png", "1.png", outwards),
        ("/x.png", "1.png", outwards),
        ("p0//9.png", "1.png", outwards),
        ("p0/9.png", "deep/1.png", "a link that leads out of it"),
        ("p0/link/9.png", "1.png", "a link that leads out of it"),
    ):
        write_list(AWAY / "moved.csv", header, [(path, moved_to, "", root)])
        with pytest.raises(MelaError, match=message):
            put_back(mine, AWAY)
    assert (outside / "1.png").read_bytes() == b"words"
    assert sorted(path.name for path in outside.iterdir()) == ["1.png"]


def test_a_move_that_fails_midway_can_be_undone(messy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list is there before the first file moves."""
    before, plain, calls = contents(messy), Path.rename, list[Path]()

    def fail(self: Path, target: Path) -> Path:
        calls.append(self)
        if len(calls) == 3:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(self))
        return plain(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        done = check("mine", "--set-aside", AWAY)
    assert (done.status, done.err.count("\n")) == (1, 1)
    assert done.err.startswith("error: mine/")
    assert contents(messy) != before
    put_back(messy, AWAY)
    assert contents(messy) == before


@pytest.fixture
def other_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files be moved as if the folders were on two file systems."""
    plain = Path.rename

    def across(self: Path, target: Path) -> Path:
        if self.suffix != ".tmp":
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), str(self))
        return plain(self, target)

    monkeypatch.setattr(Path, "rename", across)


def test_another_file_system_gets_a_copy_that_is_whole(messy: Path, other_file_system: None) -> None:
    before = contents(messy)
    assert check("mine", "--set-aside", AWAY).status == 0
    assert len(contents(messy)) == len(before) - 8
    done, problems = put_back(messy, AWAY)
    assert (len(done), problems) == (8, [])
    assert contents(messy) == before


SOCKET = "mine/p2/l0/s: expected a file that can be moved to another file system, got the socket; remove it"


def test_pipes_are_made_again_on_another_file_system_and_sockets_stay(
    messy: Path, other_file_system: None, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(messy)
    os.mkfifo(messy / "p0/l1/pipe", 0o640)
    socket_at(messy / "p2/l0/s")
    for _ in range(2):
        done = check("mine", "--set-aside", AWAY)
        assert done.status == 1
        (error,) = done.errors()
        assert "got the socket 'p2/l0/s', which cannot be read" in error
        assert f"not set aside: {SOCKET}" in done.out.splitlines()
        assert "p2/l0/s" not in moved()
    assert len(rows(AWAY / "moved.csv")) == 9
    assert (AWAY / "p0/l1/pipe").is_fifo()
    assert stat.S_IMODE((AWAY / "p0/l1/pipe").stat().st_mode) == 0o640
    assert (messy / "p2/l0/s").is_socket()
    assert not list(AWAY.rglob("*.tmp"))
    data.put_back(messy, AWAY)
    assert capsys.readouterr().out == "mine: 9 files are back\n"
    assert contents(messy) == before
    assert (messy / "p0/l1/pipe").is_fifo()
    assert not AWAY.exists()


def test_nothing_is_listed_where_nothing_can_be_moved(mine: Path, other_file_system: None) -> None:
    socket_at(mine / "p2/l0/s")
    done = check("mine", "--set-aside", AWAY)
    assert "set aside: 0 files that cannot be read" in done.out.splitlines()
    assert not AWAY.exists()


def test_what_is_copied_in_part_or_cannot_be_removed_stays_alone(
    mine: Path, other_file_system: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other file is moved all the same."""
    for name in ("a.png", "b.png", "c.png"):
        (mine / "p0/l0" / name).write_bytes(name.encode())
    before, copy, unlink = contents(mine), shutil.copy2, Path.unlink

    def fail(source: Path, target: Path, **options: bool) -> None:
        copy(source, target, **options)
        if source.name == "a.png":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(source))

    def kept(self: Path, **options: bool) -> None:
        if self == mine / "p0/l0/b.png":
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(self))
        unlink(self, **options)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", fail)
        patch.setattr(Path, "unlink", kept)
        done = check("mine", "--set-aside", AWAY)
    assert len(done.errors()) == 1
    assert "not set aside: mine/p0/l0/a.png: Permission denied; check who may read and write it" in done.out
    assert "not set aside: mine/p0/l0/b.png: Operation not permitted; check who may read and write it" in done.out
    assert sorted(contents(AWAY)) == ["moved.csv", "p0/l0/c.png"]
    assert moved() == ["p0/l0/c.png"]
    assert put_back(mine, AWAY)[1] == []
    assert contents(mine) == before


def test_no_file_is_moved_onto_another(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_text(name)
    with pytest.raises(MelaError, match=r"there/1\.png: expected nothing in this place, got a file; move it away"):
        _move(tmp_path / "here", "1.png", tmp_path / "there", "1.png")
    assert contents(tmp_path) == {"here/1.png": b"here", "there/1.png": b"there"}


def test_files_go_back_to_the_folder_that_they_come_from_and_to_no_other(messy: Path) -> None:
    assert check("mine", "--set-aside", AWAY).status == 0
    shutil.copytree(messy, "others")
    truncated(Path("others/p0/l0/b.jpg"))
    before, here = {folder: contents(Path(folder)) for folder in ("mine", "others", "away")}, messy.resolve()
    with pytest.raises(MelaError) as refused:
        put_back(Path("others"), AWAY)
    assert str(refused.value) == (
        f"others: expected {here}, from which the files in away were moved, got another folder; name that one, or "
        "correct the column root of away/moved.csv if the data has moved since"
    )
    assert check("others", "--set-aside", AWAY).err == (
        f"error: --set-aside: expected a folder with files of {Path('others').resolve()}, got away with files of "
        f"{here}; name another one\n"
    )
    assert {folder: contents(Path(folder)) for folder in before} == before
    # by another way to the same folder
    Path("way").symlink_to(messy)
    done, problems = put_back(Path("way"), AWAY)
    assert (len(done), problems) == (len(BAD), [])


def test_putting_back_needs_a_list(mine: Path) -> None:
    with pytest.raises(MelaError, match=r"nowhere/moved\.csv: no such file; name the folder that .* made"):
        put_back(mine, Path("nowhere"))


def test_details_are_written(messy: Path) -> None:
    shutil.copy(messy / "p0/l0/0.png", messy / "p0/l0/=again.png")
    shutil.copy(messy / "p0/l0/0.png", messy / "p1/l0/again.png")
    (messy / "+notes.txt").touch()
    done = check("mine", "--details", "found")
    assert "details: found/errors.csv, found/unused.csv, found/copies.csv" in done.out.splitlines()
    assert sorted(row["error"] for row in rows(Path("found/errors.csv"))) == sorted(check("mine", "--all").errors())
    assert [row["path"] for row in rows(Path("found/unused.csv"))] == ["'+notes.txt", "p3/.dvcignore"]
    assert [(row["path"], row["same_as"]) for row in rows(Path("found/copies.csv"))] == [
        ("p0/l0/=again.png", "p0/l0/0.png"),
        ("p1/l0/again.png", "p0/l0/0.png"),
    ]


@pytest.mark.parametrize("folder", ["mine", "mine/p0/new", "link/p0"])
def test_details_do_not_go_into_the_data(mine: Path, folder: str) -> None:
    Path("link").symlink_to(mine)
    before = contents(mine)
    message = f"--details: {folder}/errors.csv lies in mine, which this command reads; write to another folder"
    done = check("mine", "--details", folder)
    assert (done.status, done.out, done.err) == (1, "", f"error: {message}\n")
    assert contents(mine) == before


def test_parameters_take_no_images_place(mine: Path) -> None:
    before = contents(mine)
    message = "--write: mine/p0/l0/0.png lies in mine, which this command reads; write to another folder"
    assert check("mine", "--write", "mine/p0/l0/0.png").err == f"error: {message}\n"
    assert contents(mine) == before
