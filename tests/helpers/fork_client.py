"""Ask the server of forks to run Python; imports what starts in no time, since a shell's `python` uses it.

As a script, with the path of the server's socket and what `python` was given, it is that `python`: a module or code
with arguments is run in a fork, and anything else by Python itself. `tests.helpers.forked` says why no library
does this.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

# variables that Python and packages read while they start or are imported, which is over in a fork
EARLY = ("COVERAGE_", "CUDA_", "LD_", "MKL_", "OMP_", "OPENBLAS_", "PYTHON")
NEITHER = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHON_EXEC"}


class Forked:
    """A fork that runs a module or code, with some manners of `subprocess.Popen`.

    Parameters
    ----------
    path : str
        The server's socket.
    words : sequence of str
        What follows ``python``: ``-m`` and a module or ``-c`` and code, perhaps after ``-u``, and arguments.
    folder : str
        Its current directory.
    environment : mapping of str to str
        All variables that it sees.
    streams : sequence of three int
        File descriptors of its input, output and errors.
    """

    def __init__(
        self, path: str, words: Sequence[str], folder: str, environment: Mapping[str, str], streams: Sequence[int]
    ) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        text = json.dumps([list(words), folder, dict(environment)]).encode() + b"\n"
        sent = socket.send_fds(self._socket, [text], list(streams))
        self._socket.sendall(text[sent:])
        self._answers = self._socket.makefile(encoding="ascii")
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def send_signal(self, number: signal.Signals) -> None:
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status, or the number of a signal as a negative one; raise TimeoutError."""
        if self.returncode is None:
            self._socket.settimeout(timeout)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._socket.close()
        return self.returncode


def early(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that cannot be changed for a fork."""
    return {name: text for name, text in environment.items() if name.startswith(EARLY) and name not in NEITHER}


def main(path: str, started_with: str, *words: str) -> None:
    how = words[1:2] if words[:1] == ("-u",) else words[:1]
    if how not in (("-m",), ("-c",)) or early(os.environ) != json.loads(started_with):
        os.execv(sys.executable, [sys.executable, *words])
    child = Forked(path, words, str(Path.cwd()), os.environ, [0, 1, 2])
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _: child.send_signal(signal.Signals(received)))
    status = child.wait()
    if status < 0:
        # nobody can catch SIGKILL
        with suppress(OSError):
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
