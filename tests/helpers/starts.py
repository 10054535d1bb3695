"""What a process imports before it starts to work."""

import subprocess
import sys

from tests.helpers.processes import ENVIRONMENT

SLOW = ("matplotlib", "scipy.optimize", "scipy.stats", "sklearn", "torch", "torchvision")
NEEDED = {name: {"torch"} for name in ("embed", "extract", "assign", "pretrain", "evaluate", "map")}


def modules_after(code: str) -> set[str]:
    """Names of all modules that a new Python process has imported once it has run some code."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules, sep='\\n', file=sys.stderr)"]
    ended = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    return set(ended.stderr.splitlines())
