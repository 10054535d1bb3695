"""Commands in processes of their own."""

import os
import subprocess
from pathlib import Path

from tests.helpers.forked import with_forks
from tests.helpers.project import ROOT

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def started(*command: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command that has ended, in a folder or the current one, with variables beside those that all have."""
    variables = ENVIRONMENT | environment
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=600)


def python(*arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of Python that has ended: a fork with the packages that others have made."""
    return started("python", *arguments, folder=folder, **with_forks(ENVIRONMENT | environment))
