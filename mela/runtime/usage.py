"""Measure the seconds and the memory of a piece of work."""

import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from mela.errors import MelaError
from mela.io.store import read_json, write_json
from mela.runtime.console import duration

FOLDER = Path("results/usage")


@dataclass
class Usage:
    """Hold the time and memory that a process took.

    Attributes
    ----------
    seconds : float
    memory : int
        Bytes of resident memory at its peak, of this process or of the largest that it started.
    """

    seconds: float = 0.0
    memory: int = 0

    def __str__(self) -> str:
        return f"{duration(self.seconds)}, {self.memory / 2**20:,.0f} MiB of memory at most"


@dataclass
class _Meter:
    """Hold when a piece of work began, and what it took before it was interrupted."""

    begun: float
    before: Usage = field(default_factory=Usage)

    def read(self) -> Usage:
        """Return the usage so far."""
        return Usage(seconds=self.before.seconds + time.time() - self.begun, memory=max(self.before.memory, _peak()))


_METER: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def measured(started: float | None = None) -> Iterator[Usage]:
    """Fill in the usage when the block ends, including that before an interruption.

    Parameters
    ----------
    started : float, optional
        Start in seconds of `time.time`; now by default.
    """
    usage, meter = Usage(), _Meter(time.time() if started is None else started)
    token = _METER.set(meter)
    try:
        yield usage
    finally:
        _METER.reset(token)
        found = meter.read()
        usage.seconds, usage.memory = found.seconds, found.memory


def so_far() -> Usage:
    """Return the usage of the enclosing `measured` block, interrupted parts included; zero outside of one."""
    meter = _METER.get()
    return meter.read() if meter else Usage()


def went_before(usage: Usage) -> None:
    """Tell the `measured` block what its work took before it was interrupted."""
    if meter := _METER.get():
        meter.before = usage


def _peak() -> int:
    """Return the largest resident memory so far, in bytes."""
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    # counted in KiB, on macOS in bytes
    unit = 1 if sys.platform == "darwin" else 1024
    own, children = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    status = Path("/proc/self/status")
    if status.is_file() and (found := re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"))):
        # Linux counts in the other what the process that started this one had
        own = int(found[1])
    return unit * max(own, children)


def keep(stage: str, usage: Usage, folder: Path = FOLDER) -> None:
    """Keep what a stage took when it last ran; it is no output of the stage, since it never repeats exactly."""
    write_usage(folder / f"{stage}.json", usage)


def write_usage(path: Path, usage: Usage) -> None:
    """Write a usage for `read_usage`."""
    write_json(path, {"seconds": usage.seconds, "memory_bytes": usage.memory})


def read_usage(path: Path) -> Usage:
    """Read what `write_usage` wrote.

    Raises
    ------
    MelaError
        The file is missing or holds something else.
    """
    content = read_json(path)
    seconds, memory = content.get("seconds"), content.get("memory_bytes")
    if not isinstance(seconds, int | float) or not isinstance(memory, int):
        found = ", ".join(content) or "none"
        raise MelaError(f"{path}: expected seconds and memory_bytes, got {found}; delete it")
    return Usage(seconds=float(seconds), memory=memory)


def kept(stages: Iterable[str], folder: Path = FOLDER) -> dict[str, Usage]:
    """Return what these stages took, as far as they have run here.

    Raises
    ------
    MelaError
        A file holds something else.
    """
    paths = {stage: folder / f"{stage}.json" for stage in stages}
    return {stage: read_usage(path) for stage, path in paths.items() if path.is_file()}
