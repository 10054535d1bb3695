"""All cases of bad input together."""

from tests.helpers.project import ROOT
from tests.stages import test_bad_files, test_bad_images, test_bad_params, test_bad_tasks


def test_there_are_enough_cases() -> None:
    """As many as the documentation says."""
    count = sum(len(module.CASES) for module in (test_bad_files, test_bad_images, test_bad_params, test_bad_tasks))
    assert count >= 50
    assert f"hold {count} cases" in (ROOT / "docs/results/reliability.md").read_text(encoding="utf-8")
