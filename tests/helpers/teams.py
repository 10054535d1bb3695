"""What the pages on teams need: a stand-in for the stages, and what DVC's cache holds."""

import json
import re
import sys
from pathlib import Path

from tests.helpers.pipeline import listed
from tests.helpers.project import STAGE_NAMES

STAND_IN = """
import hashlib, json, sys
from pathlib import Path

outputs = json.loads(Path(__file__).with_name("outputs.json").read_text())[sys.argv[2].removeprefix("stages.")]
number = int(hashlib.sha256(Path("params.yaml").read_bytes()).hexdigest()[:6], 16)
for name in outputs:
    file = Path(name) if "." in name else Path(name, "page.md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({name: number}) if file.suffix == ".json" else f"x\\n{name} {number}\\n")
"""


def without_code(pipeline: str) -> str:
    """A dvc.yaml without the stage of code, which has nothing to do where a program stands in for all stages."""
    pipeline, found = re.subn(r"^  code:\n(    .*\n)+", "", pipeline, flags=re.MULTILINE)
    assert found == 1
    pipeline, found = re.subn(r"^ +- data/code/\w+\.json\n", "", pipeline, flags=re.MULTILINE)
    assert found == len(STAGE_NAMES)
    return pipeline


def put_stand_in(folder: Path) -> None:
    """A program `python` that stands in for every stage."""
    folder.mkdir()
    outputs = {stage: listed(stage, "outs", "metrics", "plots") for stage in STAGE_NAMES}
    (folder / "outputs.json").write_text(json.dumps(outputs), encoding="utf-8")
    (folder / "stand_in.py").write_text(STAND_IN, encoding="utf-8")
    (folder / "python").write_text(
        f'#!/bin/sh\nexec {sys.executable} -I -S {folder}/stand_in.py "$@"\n', encoding="utf-8"
    )
    (folder / "python").chmod(0o755)


def ran(said: str) -> list[str]:
    return re.findall(r"^Running stage '(\w+)'", said, flags=re.MULTILINE)


def cached(said: str) -> list[str]:
    return re.findall(r"^Stage '(\w+)' is cached - skipping run", said, flags=re.MULTILINE)
