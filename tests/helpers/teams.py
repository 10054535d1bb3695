"""What the pages on teams need: a stand-in for the stages, and what DVC's cache holds."""

import json
import re
import shlex
import sys
from pathlib import Path

from tests.helpers.forked import run, settle
from tests.helpers.pipeline import listed
from tests.helpers.project import CELLS, STAGE_NAMES, stage_words

STAND_IN = """
import hashlib, json, sys
from pathlib import Path

outputs = json.loads(Path(__file__).with_name("outputs.json").read_text())[" ".join(sys.argv[2:])]
number = int(hashlib.sha256(Path("params.yaml").read_bytes()).hexdigest()[:6], 16)
for name in outputs:
    file = Path(name) if "." in name else Path(name, "page.md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({name: number}) if file.suffix == ".json" else f"x\\n{name} {number}\\n")
"""


class Place:
    """A folder in which people have a home, and clones beside each other."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.environment = settle(folder)

    def run(self, command: str, folder: Path, *, succeeds: bool = True) -> str:
        """What a command prints there."""
        return run(command, folder, self.environment, succeeds=succeeds)

    def clone(self, name: str, source: object) -> Path:
        """Somebody's fresh clone."""
        self.run(f"git clone --quiet {source} {self.folder / name}", self.folder)
        return self.folder / name

    def put_program(self, name: str, script: str) -> Path:
        """Let a script be the first program of a name; its folder."""
        programs = self.folder / "programs"
        programs.mkdir()
        (programs / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        return programs

    def put_stand_in(self) -> None:
        """Let a program `python` stand in for every stage."""
        programs = self.put_program("python", f'exec {sys.executable} -I -S "$(dirname "$0")/stand_in.py" "$@"')
        outputs = {" ".join(stage_words(cell)[1:]): listed(cell, "outs", "metrics", "plots") for cell in CELLS}
        (programs / "outputs.json").write_text(json.dumps(outputs), encoding="utf-8")
        (programs / "stand_in.py").write_text(STAND_IN, encoding="utf-8")

    def run_anew(self, clone: Path, *given: str) -> None:
        """Run the pipeline without the stage of code, which has nothing to do where all stages are stood in for.

        DVC takes over what the stages leave, and writes its lock file once instead of after every stage. It looks at
        all that Git knows whenever a stage has run, so what no stage reads goes. Of stages that are `given`, it knows
        the outputs as files alone.
        """
        self.run("git rm -r --quiet benchmark docs studies tests", clone)
        pipeline = (clone / "dvc.yaml").read_text(encoding="utf-8")
        for name in ("code", *given):
            pipeline, found = re.subn(rf"^  {name}:\n(    .*\n)+", "", pipeline, flags=re.MULTILINE)
            assert found == 1
        pipeline, found = re.subn(r"^ +- data/code/\w+\.json\n", "", pipeline, flags=re.MULTILINE)
        assert found == len(STAGE_NAMES) - len(given)
        (clone / "dvc.yaml").write_text(pipeline, encoding="utf-8")
        (clone / "dvc.lock").unlink()
        self.run(" && ".join(shlex.join(["python", *stage_words(cell)]) for cell in CELLS), clone)
        self.run("dvc commit --quiet --force", clone)
        assert "up to date" in self.run("dvc repro", clone)


def cached(said: str) -> list[str]:
    return re.findall(r"^Stage '([\w@]+)' is cached - skipping run", said, flags=re.MULTILINE)
