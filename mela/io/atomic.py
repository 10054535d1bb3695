"""Write files that appear whole or not at all, alone or several at once.

The module is the project's own, since packages for atomic writes replace one file at a time, and several outputs of a
stage belong together.
"""

import errno
import glob
import hashlib
import os
import platform
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

import psutil

from mela.errors import MelaError

DEVICES = Path("/dev")
_group: ContextVar[dict[Path, Path] | None] = ContextVar("_group", default=None)


@cache
def _machine() -> str:
    """Return where process numbers mean something: a host and, for containers on it, their own numbering."""
    numbering = Path("/proc/self/ns/pid")
    name = f"{platform.node()} {numbering.stat().st_ino if numbering.exists() else ''}"
    return hashlib.sha256(name.encode()).hexdigest()[:8]


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary name that takes the place of `path`, synced to disk, once the block ends without an error.

    Leftovers of ended processes are deleted. Within `together`, the file takes its place at the end of that block.

    Raises
    ------
    MelaError
        The path names a folder, a device or a pipe, whose place must not be taken.
    """
    _require_place(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    here = _machine()
    for left in path.parent.glob(f".{glob.escape(path.name)}.{here}-*.tmp"):
        process = left.name.removesuffix(".tmp").rpartition("-")[2]
        if process.isdecimal() and len(process) < 10 and not psutil.pid_exists(int(process)):
            left.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{here}-{os.getpid()}.tmp")
    group = _group.get()
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        if group is None:
            temporary.replace(path)
        else:
            group[path] = temporary
    except OSError as error:
        if error.errno is not None and error.filename in (None, str(temporary)):
            error.filename = str(path)
        raise
    finally:
        if group is None or path not in group:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def _require_place(path: Path) -> None:
    """Raise MelaError unless a file may take this place; root could replace /dev/null, which all programs need."""
    if not path.name:
        raise MelaError(f"{str(path)!r}: expected the name of a file, got a folder; give another name")
    if path.absolute().parent == DEVICES or (path.exists() and not path.is_file() and not path.is_dir()):
        raise MelaError(f"{path}: expected the name of a file, got a device or a pipe; give another name")


@contextmanager
def together() -> Iterator[None]:
    """Put files that are written in the block in their places when it ends; put none there if it raises.

    They do so one right after the other, while signals wait. Only SIGKILL, or a failure of the machine, in that moment
    leaves some old and some new. The files of a block within another one appear with those of the outer block, and not
    at all if the inner one raises, even where the outer one catches the error.

    Raises
    ------
    IsADirectoryError
        A folder is in the place of one of them; all are left as they were.
    """
    if (outer := _group.get()) is not None:
        before = set(outer)
        try:
            yield
        except BaseException:
            for path in outer.keys() - before:
                outer.pop(path).unlink(missing_ok=True)
            raise
        return
    group: dict[Path, Path] = {}
    token = _group.set(group)
    try:
        yield
        for path in group:
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        with _undisturbed():
            for path, temporary in group.items():
                temporary.replace(path)
    finally:
        _group.reset(token)
        for temporary in group.values():
            temporary.unlink(missing_ok=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let signals for which Python has a handler wait until the block ends."""
    if threading.current_thread() is not threading.main_thread():
        # handlers run in the main thread only
        yield
        return
    came: list[int] = []
    handlers = {
        number: signal.signal(number, lambda caught, frame: came.append(caught))
        for number in (signal.SIGINT, signal.SIGTERM)
        if callable(signal.getsignal(number))
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
