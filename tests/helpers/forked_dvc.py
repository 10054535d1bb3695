"""DVC's command line, each command in a process of its own, without the second that importing DVC takes.

A server imports DVC, does nothing else, and forks for every command.
"""

import multiprocessing
import os
import shlex
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


def _become_dvc(arguments: list[str], folder: str, environment: dict[str, str], said: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    os.umask(0o022)
    file = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(file, stream)
    from dvc.cli import main

    sys.exit(main(arguments))


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
