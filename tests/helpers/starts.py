"""What a process imports before it starts to work."""

import sys

from tests.helpers.processes import started

SLOW = ("matplotlib", "scipy.optimize", "scipy.stats", "sklearn", "torch", "torchvision")
NEEDED = {name: {"torch"} for name in ("embed", "extract", "assign", "pretrain", "evaluate", "map")}


def modules_after(code: str) -> set[str]:
    """Names of all modules that a new Python process has imported once it has run some code."""
    ended = started(sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules, sep='\\n', file=sys.stderr)")
    assert ended.returncode == 0, ended.stderr
    return set(ended.stderr.splitlines())
