"""Parameters that were tried before train nothing again: DVC remembers what came of them."""

from pathlib import Path

import pytest

from tests.helpers.dvc import AFTER_LABEL, ran
from tests.helpers.project import ROOT, STAGE_NAMES
from tests.helpers.teams import Place, cached

pytestmark = pytest.mark.slow


def test_there_and_back(tmp_path: Path) -> None:
    """Of the stages that another q runs again; tests/dvc/test_pipeline.py shows that it leaves the others alone."""
    place = Place(tmp_path)
    place.put_stand_in()
    clone = place.clone("mela", ROOT)
    of_cells = {name.partition("@")[0] for name in AFTER_LABEL}
    place.run_anew(clone, *(name for name in STAGE_NAMES if name not in of_cells))
    # DVC may remember what it runs itself, and nothing that it has taken over
    place.run("rm -r .dvc/cache/runs", clone)
    first = place.run(f"dvc repro --force --single-item {' '.join(AFTER_LABEL)}", clone)
    assert ran(first) == AFTER_LABEL
    place.run("git commit --quiet --all --message run", clone)
    before = {path: path.read_bytes() for path in (clone / "models").rglob("*") if path.is_file()}
    there = place.run("dvc exp run --set-param labeler.q=9.0", clone)
    assert sorted(ran(there)) == sorted(AFTER_LABEL)
    assert cached(there) == []
    assert any(path.read_bytes() != content for path, content in before.items())
    back = place.run("dvc exp run --set-param labeler.q=5.0", clone)
    assert sorted([*cached(back), "report"]) == sorted(AFTER_LABEL)
    assert ran(back) == ["report"]
    assert all(path.read_bytes() == content for path, content in before.items())
