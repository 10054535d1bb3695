"""What a process imports before it starts to work."""

import json
import sys
from collections.abc import Sequence

from tests.helpers.processes import started

SLOW = ("matplotlib", "scipy.optimize", "scipy.stats", "sklearn", "torch", "torchvision")
NEEDED = {name: {"torch"} for name in ("embed", "extract", "round", "assign", "pretrain", "evaluate", "map")}


FORKS = """
import json, os, sys
{first}
for code in {codes!r}:
    if os.fork() == 0:
        exec(code)
        print(json.dumps([*sys.modules]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, code
"""


def modules_after_each(codes: Sequence[str], first: str) -> list[set[str]]:
    """Return what `modules_after` does for each of several codes, which forks of one process run after a first one."""
    ended = started(sys.executable, "-c", FORKS.format(first=first, codes=[*codes]))
    assert ended.returncode == 0, ended.stderr
    return [{*json.loads(line)} for line in ended.stdout.splitlines()]


def modules_after(code: str) -> set[str]:
    """Names of all modules that a new Python process has imported once it has run some code."""
    ended = started(sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules, sep='\\n', file=sys.stderr)")
    assert ended.returncode == 0, ended.stderr
    return set(ended.stderr.splitlines())
