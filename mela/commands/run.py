"""Run the pipeline's stages one after the other, for those who want neither Git nor DVC."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from mela.errors import MelaError
from mela.output import log

PIPELINE, PARAMS = Path("dvc.yaml"), Path("params.yaml")


def run(
    first: Annotated[
        str | None, typer.Option("--from", help="Begin with this stage; those before it are kept.")
    ] = None,
) -> None:
    """Run all stages of dvc.yaml in their order, in this folder, without Git and DVC.

    Every stage runs, whether or not its inputs have changed; `dvc repro` runs only those that have to. After an error
    `mela run --from STAGE` goes on with the stage that failed.

    Example: `mela data check data/raw/mine --write params.yaml && mela run`
    """
    from mela.params import check_document

    commands = stage_commands(PIPELINE)
    if first is not None and first not in commands:
        raise MelaError(f"--from: expected one of {', '.join(commands)}, got {first!r}; correct it")
    check_document(PARAMS)
    names = list(commands)
    start = 0 if first is None else names.index(first)
    if start:
        log.info(f"run: not run again, as --from asks: {', '.join(names[:start])}")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([".", *filter(None, [os.environ.get("PYTHONPATH")])])}
    for number, name in enumerate(names[start:], start + 1):
        log.info(f"run: {name} ({number} of {len(names)})")
        ended = subprocess.run([sys.executable, "-m", commands[name]], check=False, env=environment)  # noqa: S603
        if ended.returncode:
            raise MelaError(
                f"run: the stage {name} ended with status {ended.returncode}, for the reason above; correct it, then "
                f"go on with `mela run --from {name}`"
            )
    log.info("run: all stages are done; `mela summary` prints the results")


def stage_commands(pipeline: Path) -> dict[str, str]:
    """Return the Python module of each stage of a pipeline, in the order of the file.

    Raises
    ------
    MelaError
        The file is missing or no pipeline, or a stage is no Python module.
    """
    from mela.params import read_yaml

    if not pipeline.is_file():
        raise MelaError(f"{pipeline}: no such file; run `mela run` in the folder of a clone of the project")
    stages = read_yaml(pipeline).get("stages")
    if not isinstance(stages, dict) or not stages:
        raise MelaError(f"{pipeline}: expected stages, got none; use the file of the project")
    modules = {}
    for name, stage in stages.items():
        command = stage.get("cmd") if isinstance(stage, dict) else None
        found = re.fullmatch(r"python -m ([\w.]+)", command) if isinstance(command, str) else None
        if found is None:
            raise MelaError(f"{pipeline}: {name}: expected the command `python -m MODULE`, got {command!r}; correct it")
        modules[str(name)] = found[1]
    return modules
