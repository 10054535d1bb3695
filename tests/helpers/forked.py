"""Commands in processes of their own, without the seconds that importing DVC and torch takes in each.

A server imports the packages of others, does nothing else, and forks for every command. A fork imports the project
itself, from the folder that the command runs in.
"""

import multiprocessing
import os
import runpy
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from studies.clones import for_clone

SERVER = multiprocessing.get_context("forkserver")
# what its commands import only when they need it; not pygit2, which looks for the user's configuration at once
SERVER.set_forkserver_preload(
    [
        "dulwich.worktree",
        "dvc.cli",
        "dvc.commands.repro",
        "dvc.data_cloud",
        "dvc.repo.experiments",
        "dvc.stage.run",
        "dvc_render",
        "networkx",
        "pyparsing",
        "ruamel.yaml",
        "s3fs",
        "sshfs",
        # and those of the stages
        "PIL.Image",
        "psutil",
        "pyarrow.parquet",
        "pydantic",
        "safetensors.torch",
        "sklearn.cluster",
        "sklearn.metrics",
        "torch",
        "typer",
    ]
)
SECONDS = 120


def settle(folder: Path) -> dict[str, str]:
    """Variables for commands of people whose home, made here, is in `folder`, and who have nothing from elsewhere."""
    home = folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[safe]\n  directory = *\n[user]\n  name = Ann\n  email = ann@example.org\n")
    inherited = {
        name: value for name, value in for_clone().items() if not name.startswith(("AWS_", "PYTHON", "SSH_", "XDG_"))
    }
    return inherited | {
        "HOME": str(home),
        "COLUMNS": "200",
        "DVC_SITE_CACHE_DIR": str(folder / "site"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
    }


def _settle_in(folder: str, environment: dict[str, str], said: list[str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.umask(0o022)
    for stream, path in enumerate(said, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), stream)


def _become_dvc(arguments: list[str], folder: str, environment: dict[str, str], said: str) -> None:
    _settle_in(folder, environment, [said, said])
    from dvc.cli import main

    sys.exit(main(arguments))


def _become_module(name: str, folder: str, environment: dict[str, str], said: list[str]) -> None:
    _settle_in(folder, environment, said)
    sys.path.insert(0, folder)
    # what Python has there while it looks for a module that it is to run
    sys.argv = ["-m"]
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except Exception:
        # as Python itself ends, which a fork of this server does not
        sys.excepthook(*sys.exc_info())
        sys.exit(1)


class Forked:
    """A module of a project that runs in a fork, with the manners of `subprocess.Popen`.

    What it prints is in two files beside its folder.
    """

    def __init__(self, name: str, folder: Path, environment: Mapping[str, str]) -> None:
        self._said = [folder.with_name(f"{folder.name}.{stream}") for stream in ("out", "err")]
        for path in self._said:
            path.unlink(missing_ok=True)
        said = [str(path) for path in self._said]
        self._process = SERVER.Process(target=_become_module, args=(name, str(folder), dict(environment), said))
        self._process.start()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self._process.is_alive() and self._process.pid:
            os.kill(self._process.pid, number)

    def communicate(self, timeout: float = SECONDS) -> tuple[str, str]:
        self._process.join(timeout)
        if self.returncode is None:
            self._process.kill()
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        out, err = (path.read_text(encoding="utf-8") if path.exists() else "" for path in self._said)
        return out, err


def run(command: str, folder: Path, environment: Mapping[str, str], *, succeeds: bool = True) -> str:
    """What a command line prints: of DVC in a fork, of anything else in Bash.

    Parameters
    ----------
    command : str
    folder : Path
        The current directory of the command; what it printed is kept beside it.
    environment : mapping of str to str
        All variables that it sees.
    succeeds : bool
        Whether its status has to be 0, or has to be another.
    """
    if command.startswith("dvc "):
        said = folder.with_name(f"{folder.name}.said")
        said.unlink(missing_ok=True)
        child = SERVER.Process(
            target=_become_dvc, args=(shlex.split(command)[1:], str(folder), dict(environment), str(said))
        )
        child.start()
        child.join(SECONDS)
        if child.exitcode is None:
            child.kill()
            child.join()
        status, text = child.exitcode, said.read_text(encoding="utf-8")
    else:
        ended = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        status, text = ended.returncode, ended.stdout
    assert (status == 0) == succeeds, f"{command}: status {status}\n{text}"
    return text
