"""What a stage imports before it reads its parameters: slow packages only where all of its work needs them."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.helpers.processes import python, started
from tests.helpers.project import ROOT, STAGE_NAMES
from tests.helpers.starts import NEEDED, SLOW, modules_after, modules_after_each


@pytest.mark.slow
@pytest.mark.parametrize("first", ["import pandas, pyarrow", "import torch"])
def test_a_stage_starts_without_what_it_does_not_need(first: str) -> None:
    """After what all of these need, which is then imported once."""
    assert all(needed == {"torch"} for needed in NEEDED.values())
    common = {"torch"} & {*first.split()}
    stages = [stage for stage in STAGE_NAMES if NEEDED.get(stage, set()) == common]
    found = modules_after_each(["", *(f"import stages.{stage}" for stage in stages)], first)
    assert {*SLOW} & found[0] == common
    for stage, imported in zip(stages, found[1:], strict=True):
        assert f"stages.{stage}" in imported
        assert {*SLOW} & imported == common, stage


def test_a_stage_ends_without_looking_for_garbage() -> None:
    code = """
import gc, sys
from stages.common.run import run
def main(): print("done")
try:
    run(main)
except SystemExit:
    assert gc.get_freeze_count() > len(sys.modules)
"""
    modules_after(code)


def spoil(folder: Path) -> None:
    """Write a params.yaml with a mistake in the block of a later stage."""
    text = (ROOT / "presets/glyphs.yaml").read_text(encoding="utf-8")
    (folder / "params.yaml").write_text(text.replace("  q: 5.0 ", "  q: null "), encoding="utf-8")


MISTAKE = "error: params.yaml: labeler.q: input should be a valid number, got None\n"


@pytest.mark.parametrize("stage", ["code", *STAGE_NAMES])
def test_every_stage_checks_all_parameters_first(stage: str, tmp_path: Path) -> None:
    """In a folder that has nothing but a params.yaml, so that whatever a stage did before would fail for that."""
    spoil(tmp_path)
    cell = {"pretrain": ["pruned"], "round": ["first"]}.get(stage, [])
    ended = python("-m", f"stages.{stage}", *cell, folder=tmp_path)
    assert (ended.returncode, ended.stderr) == (1, MISTAKE)


@pytest.mark.parametrize(("rank", "stops"), [(None, True), ("0", True), ("1", False)])
def test_one_process_tells_a_mistake_for_a_later_stage(tmp_path: Path, rank: str | None, stops: bool) -> None:
    """Before a stage's work, which prints "at work", though the mistake is in a block that it does not read."""
    spoil(tmp_path)
    code = """
from pathlib import Path
from stages.common.run import run
def main(params: Path = Path("params.yaml")): print("at work")
run(main)
"""
    ended = python("-c", code, folder=tmp_path, **({"RANK": rank} if rank else {}))
    assert (ended.returncode, ended.stderr) == ((1, MISTAKE) if stops else (0, ""))
    assert ("at work" in ended.stdout) != stops


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            "ImportError('libtorch_cpu.so: failed to map segment from shared object')",
            r"error: out of memory: libtorch_cpu.so: failed to map .*; use a machine with more, .*\n",
        ),
        ("ImportError('libtorch_cpu.so: undefined symbol')", r"(?s)Traceback .*ImportError: .* undefined symbol\n"),
    ],
)
@pytest.mark.parametrize("command", ["stages.embed", "mela predict --support s --query q"])
def test_too_little_memory_to_import_torch_is_one_line(tmp_path: Path, command: str, error: str, message: str) -> None:
    """What is wrong with the installation is not hidden."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text(f"raise {error}\n")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    # no fork, which has imported torch already
    ended = started(sys.executable, "-m", *command.split(), folder=tmp_path, PYTHONPATH=path)
    assert ended.returncode == 1
    assert re.fullmatch(message, ended.stderr), ended.stderr
