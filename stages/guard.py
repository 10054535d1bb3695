"""How the process of a stage ends before its work is done."""

import os
import signal
import sys
import threading
import time
from types import FrameType

SHELLS = {"sh", "ash", "bash", "dash", "fish", "ksh", "zsh", "cmd.exe", "powershell.exe", "pwsh"}
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
        threading.Thread(target=_watch, name="watch", daemon=True).start()


def _end(number: int, frame: FrameType | None) -> None:
    """Say so in one line, and leave what is written aside tidy; at a second signal, end at once."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_DFL)
    name = signal.Signals(number).name
    print(f"error: interrupted by {name}; run the same command again to go on", file=sys.stderr, flush=True)
    # an exception can be lost, where Python ignores those of destructors
    late = threading.Timer(PATIENCE, os._exit, [128 + number])
    late.daemon = True
    late.start()
    sys.exit(128 + number)


def _watch() -> None:
    """End this process once the one that started it, dvc or the first of several, is gone: nobody takes its results."""
    import psutil

    try:
        wants = next(process for process in psutil.Process().parents() if process.name() not in SHELLS)
        if wants.pid == 1 and "dvc" not in " ".join(wants.cmdline()):
            # gone before this thread began to look, and init took its place
            os._exit(1)
        while wants.is_running() and wants.status() != psutil.STATUS_ZOMBIE:
            time.sleep(INTERVAL)
    except psutil.NoSuchProcess:
        pass
    os._exit(1)
