"""What docs/guides/own-embedding.md says can be done as it says, with weights that are made here."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mela.params import check_document
from tests.helpers.docs import blocks
from tests.helpers.project import ROOT, change, run_stages

PAGE = "docs/guides/own-embedding.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
COMMANDS = [line for block in blocks(PAGE) if block.language == "sh" for line in block.content.splitlines()]
EXPERIMENTS = [command for command in COMMANDS if command.startswith("dvc exp run")]


def changes(command: str) -> dict[str, Any]:
    """What the options -S set."""
    words = shlex.split(command)
    assert words[:3] == ["dvc", "exp", "run"]
    assert words[3::2] == ["-S"] * len(words[4::2])
    yaml = YAML(typ="safe")
    return {key.lstrip("+"): yaml.load(value) for key, value in (word.split("=", 1) for word in words[4::2])}


def test_nothing_else_is_said_to_be_run() -> None:
    assert [command for command in COMMANDS if command not in EXPERIMENTS] == ["dvc repro images"]
    assert {block.language for block in blocks(PAGE)} == {"sh", "python"}
    assert len(EXPERIMENTS) == 5


@pytest.mark.parametrize("command", EXPERIMENTS)
def test_experiments_set_parameters_that_are_there(command: str, project: Path) -> None:
    change(project / "params.yaml", changes(command))
    check_document(project / "params.yaml")


def test_keys_that_presets_lack_are_added_with_plus_signs(project: Path) -> None:
    """As DVC reads them; without the signs it refuses a key that is not there."""
    hydra = pytest.importorskip("dvc.utils.hydra")
    known = YAML(typ="safe").load(project / "params.yaml")
    for command in EXPERIMENTS:
        changed = [word for word in shlex.split(command) if "=" in word]
        for word in changed:
            block, name = word.lstrip("+").partition("=")[0].split(".")
            assert word.startswith("++") == (name not in known[block]), word
        hydra.apply_overrides(str(project / "params.yaml"), changed)
        check_document(project / "params.yaml")
        (project / "params.yaml").write_text((ROOT / "presets/glyphs.yaml").read_text("utf-8"), "utf-8")


def test_parameters_of_the_table_are_valid(project: Path) -> None:
    for key, value in re.findall(r"`(\w+\.\w+)=(\w+)`", TEXT):
        block, name = key.split(".")
        backbone = {"model.backbone": "timm:resnet18"} if block == "model" else {}
        change(project / "params.yaml", backbone | {f"{block}.{name}": YAML(typ="safe").load(value)})
        check_document(project / "params.yaml")


def test_the_time_that_kept_features_save_is_what_was_measured() -> None:
    rows = json.loads((ROOT / "studies/results/bench.json").read_text(encoding="utf-8"))
    (row,) = (row for row in rows if row["name"] == "pretrain_head")
    text = " ".join(TEXT.split())
    assert (
        f"on {row['images']} images of {row['size']} pixels took {row['ours']:.1f} s for {row['epochs']} epochs" in text
    )
    assert f"and {row['reference']:.1f} s without" in text
    assert f"{row['n']} rounds with {row['network']} and {row['threads']} thread" in text


def test_features_of_ones_own(copied: Path) -> None:
    """The block that makes them, and the experiment after it."""
    (copied / "data/raw/features").mkdir(parents=True)
    (code,) = (block.content for block in blocks(PAGE) if block.language == "python")
    exec(code, {})
    change(copied / "params.yaml", changes(EXPERIMENTS[-1]))
    before = (copied / "data/features.parquet").read_bytes()
    run_stages("extract", "label")
    assert (copied / "data/features.parquet").read_bytes() != before
