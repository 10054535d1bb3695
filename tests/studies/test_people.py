"""The study of glyphs by people: what it changes in the preset, and which rows it makes of a run."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from mela.params import DataParams, EmbedParams, PretrainParams, check_document
from studies.labels import people
from tests.helpers.project import ROOT

RUN = ROOT / "results/metrics.json"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders in which runs are started; each ends at once, with the results of the project's own run."""
    folders: list[Path] = []

    def run(command: list[str], *, cwd: Path, env: dict[str, str], check: bool) -> None:
        assert command == [sys.executable, "-m", "mela", "run"]
        assert check
        check_document(cwd / "params.yaml")
        data = DataParams.read(cwd / "params.yaml")
        assert data.people is not None
        assert (data.people.share, data.people.train) == (0.25, 300)
        assert (
            data.seed
            == EmbedParams.read(cwd / "params.yaml").seed
            == PretrainParams.read(cwd / "params.yaml").seed
            == 2
        )
        assert (cwd / "stages/pretrain.py").is_file()
        (cwd / "results").mkdir()
        shutil.copy(RUN, cwd / "results")
        folders.append(cwd)

    monkeypatch.setattr(people.subprocess, "run", run)
    return folders


def test_a_row_for_each_kind_of_labels(asked: list[Path], tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = people.measure(share=0.25, seed=2, folder=tmp_path)
    assert [row["labels"] for row in rows] == list(people.LABELS)
    run = json.loads(RUN.read_text(encoding="utf-8"))
    for row in rows:
        own = run[row["labels"]]
        assert row["1_shot"] == own["1_shot"]["mean"]
        assert row["5_shot_ci95"] == own["5_shot"]["ci95"]
        assert row["5_shot_to_oracle"] == own["5_shot"].get("to_oracle")
        assert row["ari"] == own.get("ari")
    assert not asked[0].exists(), "the images of a run take much room"
    assert (ROOT / "mela/params.py").is_file(), "the project is linked, and not what is deleted"


def test_what_an_interrupted_run_has_left_is_in_nobodys_way(asked: list[Path], tmp_path: Path) -> None:
    left = tmp_path / "0.25_2"
    left.mkdir()
    (left / "mela").symlink_to(ROOT / "mela")
    (left / "params.yaml").write_text("rubbish", encoding="utf-8")
    assert len(people.measure(share=0.25, seed=2, folder=tmp_path)) == len(people.LABELS)
