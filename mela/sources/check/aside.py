"""Move files that cannot be read out of the data, and put them back."""

import errno
import os
import shutil
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from mela.errors import MelaError, told
from mela.io.reading_errors import AboutFile, Report, refuse
from mela.sources.check.lists import read_list, require_inside, write_list
from mela.sources.folder_tree import SPECIAL

LIST = "moved.csv"


class UnmovableError(MelaError):
    """Report that a single file cannot be moved, and is as it was."""


class Moved(NamedTuple):
    """Hold a moved file: its path in the data, its path in the other folder, why, and the folder of the data."""

    path: str
    moved_to: str
    reason: str
    root: str


def require_aside(root: Path, folder: Path) -> None:
    """Raise MelaError unless files of the data in `root` can be moved to `folder`.

    It has to be outside of the data, where its files would be read again, and either new, empty or the folder of an
    earlier call for the same data.
    """
    if folder.resolve().is_relative_to(root.resolve()):
        raise MelaError(f"--set-aside: expected a folder outside of the data ({root}), got {folder}; name another one")
    if folder.exists() and not folder.is_dir():
        raise MelaError(f"--set-aside: expected a folder, got the file {folder}; name another one")
    if folder.is_dir() and not (folder / LIST).is_file() and any(folder.iterdir()):
        raise MelaError(f"--set-aside: expected a new folder, got {folder}, which holds other files; name another one")
    if (folder / LIST).is_file() and (other := _other_root(root, _read(folder))):
        raise MelaError(
            f"--set-aside: expected a folder with files of {root.resolve()}, got {folder} with files of {other}; name "
            "another one"
        )


def set_aside(root: Path, problems: Iterable[str], folder: Path, *, report: Report = refuse) -> list[Moved]:
    """List each file with a problem in ``moved.csv``, then move it.

    Parameters
    ----------
    root : Path
        Folder of the data. Nothing outside of it is moved: of a link that leads out, the link alone is.
    problems : iterable of str
        Those that are an `AboutFile` name a file. Folders stay.
    folder : Path
        Where to, by the same relative paths; a file of such a name that is there already stays, and the new one gets a
        number.
    report : callable
        Told of each file that cannot be moved and stays, such as a socket if `folder` is on another file system.

    Returns
    -------
    list of Moved
        Empty where no problem names a file that can be moved.
    """
    require_aside(root, folder)
    before = _read(folder) if (folder / LIST).is_file() else []
    taken = {moved.moved_to for moved in before}
    new: list[Moved] = []
    for problem in problems:
        if not isinstance(problem, AboutFile) or any(moved.path == problem.path for moved in new):
            continue
        source = root / problem.path
        if not os.path.lexists(source) or (source.is_dir() and not source.is_symlink()):
            continue
        if not source.parent.resolve().is_relative_to(root.resolve()):
            continue
        target = _free(folder, problem.path, taken)
        taken.add(target)
        new.append(Moved(path=problem.path, moved_to=target, reason=str(problem), root=str(root.resolve())))
    if new:
        write_list(folder / LIST, Moved._fields, [*before, *new])
    done, stay = [], []
    for moved in new:
        try:
            _move(root, moved.path, folder, moved.moved_to)
            done.append(moved)
        except (UnmovableError, PermissionError) as error:
            stay.append(told(error) or str(error))
    if stay:
        _keep(folder, [*before, *done])
    for problem in stay:
        report(problem)
    return done


def put_back(root: Path, folder: Path) -> tuple[list[Moved], list[str]]:
    """Undo `set_aside`: move each file back to where it was.

    Returns
    -------
    moved : list of Moved
    problems : list of str
        A line for each file whose place is taken, or that cannot be moved; it stays where it is, and in the list.
    """
    moves = _read(folder)
    if other := _other_root(root, moves):
        raise MelaError(
            f"{root}: expected {other}, from which the files in {folder} were moved, got another folder; name that "
            f"one, or correct the column root of {folder / LIST} if the data has moved since"
        )
    done, left, problems = [], [], []
    for moved in moves:
        if not os.path.lexists(folder / moved.moved_to):
            # it was never moved, or is back already
            continue
        if os.path.lexists(root / moved.path):
            left.append(moved)
            problems.append(f"{root / moved.path}: expected nothing in this place, got a file; move it away")
            continue
        try:
            _move(folder, moved.moved_to, root, moved.path)
            done.append(moved)
        except (UnmovableError, PermissionError) as error:
            left.append(moved)
            problems.append(told(error) or str(error))
    _keep(folder, left)
    return done, problems


def _read(folder: Path) -> list[Moved]:
    where = folder / LIST
    return [
        Moved(path=require_inside(path, where), moved_to=require_inside(moved_to, where), reason=reason, root=root)
        for path, moved_to, reason, root in read_list(where, Moved._fields)
    ]


def _other_root(root: Path, moves: Iterable[Moved]) -> str | None:
    """Return the folder from which files were moved; None if it is `root`."""
    return next((moved.root for moved in moves if Path(moved.root) != root.resolve()), None)


def _keep(folder: Path, moves: Sequence[Moved]) -> None:
    """Write the list of what is left; if nothing is left, remove the list and folders that are empty."""
    if moves:
        write_list(folder / LIST, Moved._fields, moves)
    else:
        (folder / LIST).unlink()
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            Path(path).rmdir()


def _free(folder: Path, path: str, taken: set[str]) -> str:
    """Return the path, with a number before its suffix if the file exists."""
    name, number = path, 1
    while name in taken or name == LIST or os.path.lexists(folder / name):
        number += 1
        whole = Path(path)
        name = whole.with_name(f"{whole.stem} ({number}){whole.suffix}").as_posix()
    return name


def _move(here: Path, path: str, there: Path, new: str) -> None:
    """Move a file or a link, as it is, from one folder to another; raise MelaError if a link leads out of either."""
    source, target = here / path, there / new
    target.parent.mkdir(parents=True, exist_ok=True)
    for file, folder in ((source, here), (target, there)):
        if not file.parent.resolve().is_relative_to(folder.resolve()):
            raise MelaError(
                f"{file}: expected a path that stays in {folder}, got a link that leads out of it; remove it"
            )
    if os.path.lexists(target):
        raise MelaError(f"{target}: expected nothing in this place, got a file; move it away")
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_across(source, target)


def _move_across(source: Path, target: Path) -> None:
    """Move to another file system: the source goes only when the target is whole; if that fails there is no target."""
    kind = stat.S_IFMT(source.lstat().st_mode)
    if kind in SPECIAL and kind != stat.S_IFIFO:
        raise UnmovableError(
            f"{source}: expected a file that can be moved to another file system, got {SPECIAL[kind]}; remove it"
        )
    names = (target.with_name(f".moving-{number}.tmp") for number in count())
    aside = next(name for name in names if not os.path.lexists(name))
    try:
        if kind == stat.S_IFIFO:
            _make_pipe(source, aside)
        else:
            shutil.copy2(source, aside, follow_symlinks=False)
        aside.rename(target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    try:
        source.unlink()
    except OSError:
        target.unlink()
        raise


def _make_pipe(source: Path, target: Path) -> None:
    """Make a named pipe like another one, which has no content to copy."""
    try:
        os.mkfifo(target)
        shutil.copystat(source, target)
    except OSError as error:
        raise UnmovableError(
            f"{source}: expected a file system that can hold a named pipe (FIFO) at {target.parent}, got: "
            f"{error.strerror}; remove the pipe"
        ) from error
