"""The environment of commands in a clone."""

import os
import sys
from pathlib import Path


def for_clone(**more: str) -> dict[str, str]:
    """What this process has, without what DVC and Git tell of another folder, and with the programs of its Python.

    Parameters
    ----------
    more : str
        Variables to add.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DVC_", "GIT_"))}
    return kept | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"} | more
