"""Check all files below a folder: what prevents its use, and which files are not used and why."""

import errno
import os
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from mela.io.reading_errors import AboutFile, Report, refuse
from mela.sources.image_files import name_problem, permission_problem, walk_images
from mela.sources.pinned_splits import PINS

SPECIAL = {
    stat.S_IFIFO: "the named pipe (FIFO)",
    stat.S_IFSOCK: "the socket",
    stat.S_IFCHR: "the device",
    stat.S_IFBLK: "the device",
}
IGNORED = ".dvcignore"
EXAMPLES = 3


@dataclass(frozen=True, kw_only=True, order=True)
class Unused:
    """Hold a file, or a hidden folder, that is not used."""

    path: str
    reason: str


def check_files(root: Path, *, report: Report = refuse) -> None:
    """Report what nobody can read below a folder, hidden or not.

    DVC reads every file of ``data.root``: it fails at a link that leads nowhere, at a socket, at a name that is not
    UTF-8 and at a file ``.dvcignore``, and waits at a named pipe for ever. So each of them is a problem although it is
    no image.
    """
    for path, problem in _problems(root.resolve(), ""):
        report(AboutFile(problem, path))


def _problems(root: Path, folder: str) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(root / folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except PermissionError as error:
        yield folder, permission_problem(root, folder, error)
        return
    for entry in found:
        path = f"{folder}/{entry.name}" if folder else entry.name
        problem = name_problem(root, path) or _problem(root, path)
        if problem is not None:
            yield path, problem
        elif entry.is_dir(follow_symlinks=False):
            yield from _problems(root, path)


def _problem(root: Path, path: str) -> str | None:
    file = root / path
    try:
        kind = stat.S_IFMT(file.stat().st_mode)
    except OSError as error:
        if not file.is_symlink():
            return permission_problem(root, path, error)
        target = str(file.readlink())
        return (
            f"{root}: expected a file behind the link {path!r}, got none at {target!r}; remove the link, or put back "
            "what it leads to"
        )
    if kind in SPECIAL:
        return f"{root}: expected files and folders, got {SPECIAL[kind]} {path!r}, which cannot be read; remove it"
    if kind == stat.S_IFREG and file.name == IGNORED:
        return f"{root}: expected no file {IGNORED} in the data, got {path!r}, at which DVC stops; move it elsewhere"
    if kind == stat.S_IFREG and not os.access(file, os.R_OK):
        return permission_problem(root, path, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    return None


def unused_files(
    root: Path, used: Collection[str], *, table: str | None, also: Collection[str] = (), pins: bool = False
) -> list[Unused]:
    """Return the files below a folder that are not used.

    Parameters
    ----------
    root : Path
    used : collection of str
        Images that are used, by their real path below `root`; where it is empty, only files that are no images count.
    table : str or None
        Name of the table that says which images are used; it is itself in use.
    also : collection of str
        Other files that are in use.
    pins : bool
        Whether a table of the splits of tasks is in use as well, if it is there.
    """
    found: list[Unused] = []
    real = root.resolve()

    def note(path: str, reason: str) -> None:
        if path != table and path not in also and not (pins and path == PINS):
            found.append(Unused(path=path, reason=reason))

    for folder, names in walk_images(root, report=lambda problem: None, note=note):
        for name in names if table and used else ():
            path = f"{folder}/{name}" if folder else name
            if path not in used and (real / path).resolve().relative_to(real).as_posix() not in used:
                found.append(Unused(path=path, reason=f"not in {table}"))
    return sorted(found)


def unused_in_words(unused: Collection[Unused]) -> Iterator[str]:
    """Yield a line for each reason, the most frequent first: how many files, and three examples."""
    by_reason: dict[str, list[str]] = {}
    for file in unused:
        by_reason.setdefault(file.reason, []).append(file.path)
    for reason, paths in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        examples = ", ".join(map(repr, paths[:EXAMPLES]))
        more = ", ..." if len(paths) > EXAMPLES else ""
        yield f"{len(paths)} {'file' if len(paths) == 1 else 'files'}: {reason} ({examples}{more})"
