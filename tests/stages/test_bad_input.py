"""All cases of bad input together."""

from importlib import import_module

from tests.helpers.project import ROOT


def test_there_are_enough_cases() -> None:
    """As many as the documentation says."""
    names = {path.stem for path in (ROOT / "tests/stages").glob("test_bad_*.py")} - {"test_bad_input"}
    count = sum(len(import_module(f"tests.stages.{name}").CASES) for name in names)
    assert count >= 50
    assert f"hold {count} cases" in (ROOT / "docs/results/reliability.md").read_text(encoding="utf-8")
