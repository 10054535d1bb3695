"""Say how a stage ends before its work is done: Click knows no SIGTERM, and imports may swallow its exception."""

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType, TracebackType

from mela.errors import interrupted, line_of, out_of_memory
from mela.runtime.console import print_error
from stages.common.orphans import watch, who_wants_results

PATIENCE = 10.0
_work: dict[str, int | bool] = {"begun": False, "signal": 0}


def guard() -> None:
    """Prepare this process for signals, for little memory, and for the end of the process that wants its results."""
    sys.excepthook = _tell
    shares = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if shares:
        # waiting for the others, it would not get to a handler; the process that started it tells
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    else:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _end)
    if shares or "DVC_STAGE" in os.environ:
        watched = who_wants_results(alone=not shares)
        threading.Thread(target=watch, args=[watched], name="watch", daemon=True).start()


def work_begins() -> None:
    """Tell that all is imported: from now on, an interruption is an exception."""
    _work["begun"] = True


def require_no_signal() -> None:
    """End now if a signal came whose exception was lost on the way."""
    if _work["signal"]:
        sys.stdout.flush()
        os._exit(128 + int(_work["signal"]))


def _end(number: int, frame: FrameType | None) -> None:
    """Say in one line that the signal ends the program, and tidy up; at a second signal, end at once."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_DFL)
    print_error(interrupted(signal.Signals(number).name))
    if not _work["begun"]:
        # nothing is written yet, and packages that are being imported swallow exceptions
        os._exit(128 + number)
    _work["signal"] = number
    # an exception can be lost, where Python ignores those of destructors
    late = threading.Timer(PATIENCE, os._exit, [128 + number])
    late.daemon = True
    late.start()
    sys.unraisablehook = _ignored
    sys.exit(128 + number)


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Say in one line that imports need more memory or another version of MeLa; report other errors as Python does."""
    line = line_of(error) if isinstance(error, Exception) and out_of_memory(error) else None
    if (
        isinstance(error, ImportError)
        and (error.name or "").split(".")[0] == "mela"
        and not Path("mela/__init__.py").is_file()
    ):
        line = f"error: stages: not those of the installed version of MeLa ({error}); run `mela init --update` here"
    if line is None:
        sys.__excepthook__(kind, error, trace)
    else:
        print_error(line)


def _ignored(what: "sys.UnraisableHookArgs") -> None:
    """Say nothing if Python ignores the end of the program, which was already reported."""
    if not isinstance(what.exc_value, SystemExit):
        sys.__unraisablehook__(what)
