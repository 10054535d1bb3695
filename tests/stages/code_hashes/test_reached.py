"""No stage calls anything that the analysis of its code has not found."""

from pathlib import Path

import pytest

from stages.code_hashes.reached_code import Code
from tests.helpers.calls import Calls
from tests.helpers.project import ROOT, STAGE_NAMES, run_stages

pytestmark = pytest.mark.slow


def test_what_stages_call_is_what_they_are_said_to_reach(project: Path) -> None:
    code = Code(ROOT)
    missing: dict[str, list[str]] = {}
    called: set[str] = set()
    for stage in STAGE_NAMES:
        with Calls() as calls:
            run_stages(stage)
        reached = {part for name in code.reached(f"stages.{stage}") for part in name.split(",")}
        missing[stage] = sorted(calls.names() - reached)
        called |= calls.names()
    assert missing == {stage: [] for stage in STAGE_NAMES}
    assert len(called) > 250
