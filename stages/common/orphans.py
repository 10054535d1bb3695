"""End the process of a stage whose results nobody wants any more.

Linux's PR_SET_PDEATHSIG, which python-prctl sets, tells only of the direct parent, and between DVC and a stage there
may be a shell.
"""

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mela.runtime.console import print_error

if TYPE_CHECKING:
    from psutil import Process

INTERVAL = 0.5


def who_wants_results(*, alone: bool) -> "list[Process]":
    """Return the process that started this one and, if that is a shell of dvc, the ancestors up to dvc."""
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


def watch(processes: "list[Process]") -> None:
    """End this process once one of the given ones is gone: nobody takes its results."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        while all(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in processes):
            time.sleep(INTERVAL)
    _leave()


def _leave() -> None:
    print_error("error: the process that started this one is gone; run dvc again to go on")
    os._exit(1)
