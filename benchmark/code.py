"""What the code of some stages is, in one file that they depend on in place of fifty."""

import hashlib
from pathlib import Path
from typing import Annotated

import typer

from benchmark import places
from mela.params import read_yaml
from mela.store import write_json
from stages.run import run


def main(kind: Annotated[str, typer.Option()], out: Annotated[Path, typer.Option()]) -> None:
    """Read the modules that the stage ``code_<kind>`` lists; write their SHA-256."""
    stages = read_yaml(places.BENCHMARK / "dvc.yaml")["stages"]
    modules = [places.BENCHMARK / name for name in stages[f"code_{kind}"]["deps"]]
    write_json(out, {path.resolve().relative_to(Path.cwd()).as_posix(): _digest(path) for path in modules})


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    run(main)
