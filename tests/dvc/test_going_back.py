"""Parameters that were tried before train nothing again: DVC remembers what came of them."""

from pathlib import Path

import pytest

from tests.helpers.forked import run, settle
from tests.helpers.project import ROOT
from tests.helpers.teams import cached, put_stand_in, ran, without_code

pytestmark = pytest.mark.slow

AFTER_LABEL = ["label", "assign", "score_labels", "pretrain", "evaluate"]


def test_there_and_back(tmp_path: Path) -> None:
    environment = settle(tmp_path)
    put_stand_in(tmp_path / "programs")
    environment["PATH"] = f"{tmp_path / 'programs'}:{environment['PATH']}"
    clone = tmp_path / "mela"

    def do(command: str) -> str:
        return run(command, clone, environment)

    run(f"git clone --quiet {ROOT} {clone}", tmp_path, environment)
    pipeline = (clone / "dvc.yaml").read_text(encoding="utf-8")
    (clone / "dvc.yaml").write_text(without_code(pipeline), encoding="utf-8")
    (clone / "dvc.lock").unlink()
    do("dvc repro")
    do("git commit --quiet --all --message run")
    before = {path: path.read_bytes() for path in (clone / "models").rglob("*") if path.is_file()}
    there = do("dvc exp run --set-param labeler.q=9.0")
    assert set(AFTER_LABEL) <= set(ran(there))
    assert cached(there) == []
    assert any(path.read_bytes() != content for path, content in before.items())
    back = do("dvc exp run --set-param labeler.q=5.0")
    assert cached(back) == AFTER_LABEL
    assert ran(back) == ["map", "report"]
    assert all(path.read_bytes() == content for path, content in before.items())
