"""Make clones of the project: the environment of their commands, and changes of their parameters."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mela.errors import MelaError
from mela.io.commented_yaml import commented_yaml


def for_clone(**more: str) -> dict[str, str]:
    """Return this process's environment without what DVC and Git tell of another folder, with its Python's programs.

    DVC tells nobody what it is used for, which takes another process for each command.

    Parameters
    ----------
    more : str
        Variables to add.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "GIT_"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return kept | {"PATH": path, "DVC_NO_ANALYTICS": "1"} | more


def run_module(folder: Path, *words: str) -> None:
    """Run a Python module in a folder; raise MelaError if it fails."""
    try:
        subprocess.run([sys.executable, "-m", *words], cwd=folder, env=for_clone(), check=True)
    except subprocess.CalledProcessError as error:
        raise MelaError(
            f"{folder}: `python -m {' '.join(words)}` ended with status {error.returncode}; mend what its output "
            "tells, and run the study again"
        ) from error


def run_stages(folder: Path, *cells: str) -> None:
    """Run stages, such as ``embed`` and ``round first``, one after the other; raise MelaError if one fails."""
    for cell in cells:
        run_module(folder, *f"stages.{cell}".split())


def change(params: Path, changes: Mapping[str, Any]) -> None:
    """Set dotted keys of a params file, and blocks that are a single value."""
    yaml = commented_yaml()
    document = yaml.load(params.read_text(encoding="utf-8"))
    for key, value in changes.items():
        block, _, name = key.rpartition(".")
        (document[block] if block else document)[name] = value
    with params.open("w", encoding="utf-8") as file:
        yaml.dump(document, file)
