"""How the process of a stage ends before its work is done."""

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from mela.errors import interrupted

if TYPE_CHECKING:
    from psutil import Process

PATIENCE = 10.0
INTERVAL = 0.5


def guard() -> None:
    """Prepare this process for signals, and for the end of the one that wants its results."""
    shares = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if shares:
        # waiting for the others, it would not get to a handler; the process that started it tells
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    else:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _end)
    if shares or "DVC_STAGE" in os.environ:
        watched = _who_wants_results(alone=not shares)
        threading.Thread(target=_watch, args=[watched], name="watch", daemon=True).start()


def _end(number: int, frame: FrameType | None) -> None:
    """Say so in one line, and leave what is written aside tidy; at a second signal, end at once.

    Python comes to it when the call that it is in, of linear algebra perhaps, returns.
    """
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_DFL)
    print(interrupted(signal.Signals(number).name), file=sys.stderr, flush=True)
    # an exception can be lost, where Python ignores those of destructors
    late = threading.Timer(PATIENCE, os._exit, [128 + number])
    late.daemon = True
    late.start()
    sys.exit(128 + number)


def _who_wants_results(*, alone: bool) -> "list[Process]":
    """The process that started this one and, if that is a shell of dvc, the ancestors up to dvc."""
    import psutil

    ancestors = psutil.Process().parents()
    if not alone:
        return ancestors[:1]
    for number, process in enumerate(ancestors):
        with suppress(psutil.Error):
            if "dvc" in " ".join(process.cmdline()):
                return ancestors[: number + 1]
            if process.pid == 1 and number == 0 and not process.name().startswith("python"):
                # dvc ended before this process began to look, and init took its place
                _leave()
    return ancestors[:1]


def _watch(processes: "list[Process]") -> None:
    """End this process once one of these is gone: nobody takes its results."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        while all(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes):
            time.sleep(INTERVAL)
    _leave()


def _leave() -> None:
    print("error: the process that started this one is gone; run dvc again to go on", file=sys.stderr, flush=True)
    os._exit(1)
