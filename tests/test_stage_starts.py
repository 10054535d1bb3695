"""What a stage imports before it reads its parameters: slow packages only where all of its work needs them."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT, STAGES

SLOW = ("matplotlib", "scipy.optimize", "scipy.stats", "sklearn", "torch", "torchvision")
NEEDED = {name: {"torch"} for name in ("embed", "extract", "pretrain", "evaluate", "map")}


def modules_after(code: str) -> set[str]:
    """Names of all modules that a new Python process has imported once it has run some code."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules, sep='\\n', file=sys.stderr)"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return set(ended.stderr.splitlines())


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_starts_without_what_it_does_not_need(stage: str) -> None:
    imported = modules_after(f"import stages.{stage}")
    assert f"stages.{stage}" in imported
    assert {name for name in SLOW if name in imported} == NEEDED.get(stage, set())


def test_a_stage_ends_without_looking_for_garbage() -> None:
    code = """
import gc, sys
from stages.run import run
def main(): print("done")
try:
    run(main)
except SystemExit:
    assert gc.get_freeze_count() > len(sys.modules)
"""
    modules_after(code)
