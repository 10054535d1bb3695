"""Commands of studies that fail, and parameters that studies change."""

import sys
from pathlib import Path

import pytest

from mela.errors import MelaError
from mela.params import PARAMS, EmbedParams
from studies.__main__ import main
from studies.clones import change, run_module
from tests.helpers.project import ROOT


def test_a_command_that_fails_is_named_with_its_folder(tmp_path: Path) -> None:
    with pytest.raises(MelaError, match=r"`python -m json\.tool none\.json` ended with status [12]") as told:
        run_module(tmp_path, "json.tool", "none.json")
    assert str(tmp_path) in str(told.value)


def test_a_study_that_lacks_a_run_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--data", "omniglot_people", "--share", "1", "--seeds", "1", "--features", "initial"]
    place = ["--folder", str(tmp_path / "none"), "--out", str(tmp_path / "rows.csv")]
    monkeypatch.setattr(sys, "argv", ["studies", "labels.expected", *asked, *place])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert "none/omniglot_people_1_0" in line
    assert not (tmp_path / "rows.csv").exists()


def test_all_other_parameters_keep_their_values_and_comments(tmp_path: Path) -> None:
    preset, changed = ROOT / "presets/glyphs.yaml", tmp_path / PARAMS
    changed.write_bytes(preset.read_bytes())
    change(changed, {"embed.milestones": [], "runtime.device": "cpu"})
    before, after = (path.read_text(encoding="utf-8").splitlines() for path in (preset, changed))
    others = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert [new.split(":")[0].strip() for _, new in others] == ["milestones", "device"]
    assert [old.partition("#")[2] for old, _ in others] == [new.partition("#")[2] for _, new in others]
    assert EmbedParams.read(changed).milestones == []
