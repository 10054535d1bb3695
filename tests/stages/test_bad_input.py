"""All cases of bad input together."""

import sys

from tests.helpers.processes import started
from tests.helpers.project import ROOT


def test_there_are_enough_cases() -> None:
    """As many as the documentation says."""
    files = sorted(str(path) for path in (ROOT / "tests/stages").glob("test_bad_*.py"))
    found = started(sys.executable, "-m", "pytest", "--collect-only", "--quiet", *files, folder=ROOT)
    assert found.returncode == 0, found.stdout
    count = found.stdout.count("::test_what_is_bad_ends_in_one_line[")
    assert count >= 50
    assert f"hold {count} cases" in (ROOT / "docs/results/reliability.md").read_text(encoding="utf-8")
