"""Commands in processes of their own, without the seconds that importing DVC and torch takes in each.

One server for all tests of this process imports the packages of others and forks for every command; a fork imports the
project itself, from the folder that the command runs in.

multiprocessing's forkserver forks only for functions of the program that started it, but here shells, DVC and torchrun
start Python as a command.
"""

import atexit
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from studies.clones import for_clone
from tests.helpers import fork_client, fork_server

SECONDS = 120


@cache
def server() -> Path:
    """Return the folder of the server, with its socket and the programs `python`, `dvc` and `mela`, which ask it."""
    folder = Path(tempfile.mkdtemp(prefix="forks"))
    words = [sys.executable, fork_server.__file__, f"{folder}/socket"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, env=for_clone(), start_new_session=True)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(process.communicate)
    asking = [
        sys.executable,
        "-IS",
        fork_client.__file__,
        f"{folder}/socket",
        json.dumps(fork_client.early(os.environ)),
    ]
    programs = {"python": shlex.join(asking)} | {name: f"{folder}/python -m {name}" for name in ("dvc", "mela")}
    for name, command in programs.items():
        (folder / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
        (folder / name).chmod(0o755)
    while not (folder / "socket").exists():
        assert process.poll() is None, "the server of forks has ended; what it said stands above"
        time.sleep(0.02)
    return folder


def with_forks(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables with which the programs `python`, `dvc` and `mela`, and what torchrun starts, are forks.

    What one of them starts by `sys.executable` is one as well.
    """
    path = f"{server()}{os.pathsep}{environment['PATH']}"
    return {**environment, "PATH": path, "PYTHON_EXEC": str(server() / "python")}


def settle(folder: Path) -> dict[str, str]:
    """Variables for commands of people whose home, made here, is in `folder`, and who have nothing from elsewhere."""
    home = folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[safe]\n  directory = *\n[user]\n  name = Ann\n  email = ann@example.org\n")
    inherited = {
        name: value for name, value in for_clone().items() if not name.startswith(("AWS_", "PYTHON", "SSH_", "XDG_"))
    }
    return with_forks(inherited) | {
        "HOME": str(home),
        "COLUMNS": "200",
        "DVC_SITE_CACHE_DIR": str(folder / "site"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
    }


class Forked(fork_client.Forked):
    """A fork whose output and errors are kept, each in a file of its own or both in one."""

    def __init__(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], *, together: bool = False
    ) -> None:
        folder_of_streams = Path(tempfile.mkdtemp(dir=server()))
        self._out = folder_of_streams / "out"
        self._err = self._out if together else folder_of_streams / "err"
        with Path(os.devnull).open("rb") as nothing, self._out.open("ab") as out, self._err.open("ab") as err:
            streams = [stream.fileno() for stream in (nothing, out, err)]
            super().__init__(str(server() / "socket"), words, str(folder), environment, streams)

    def communicate(self, timeout: float = SECONDS) -> tuple[str, str]:
        """Return what it printed once it has ended, which it has to within some seconds."""
        try:
            self.wait(timeout)
        except TimeoutError:
            self.send_signal(signal.SIGKILL)
            raise
        return self.printed(), self._err.read_text(encoding="utf-8")

    def printed(self) -> str:
        """Return what it has printed so far."""
        return self._out.read_text(encoding="utf-8")


def run(
    command: str, folder: Path, environment: Mapping[str, str], *, succeeds: bool = True, timeout: float = SECONDS
) -> str:
    """What a command line prints in Bash.

    Parameters
    ----------
    command : str
    folder : Path
        The current directory of the command.
    environment : mapping of str to str
        All variables that it sees.
    succeeds : bool
        Whether its status has to be 0, or has to be another.
    timeout : float
        The seconds within which it has to end.
    """
    ended = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert (ended.returncode == 0) == succeeds, f"{command}: status {ended.returncode}\n{ended.stdout}"
    return ended.stdout
