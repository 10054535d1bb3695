"""Python in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.project import ROOT

ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def python(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
