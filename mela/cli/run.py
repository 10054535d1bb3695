"""Define ``mela run``: run the pipeline's stages one after the other, without Git and DVC."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from mela.errors import MelaError
from mela.runtime.console import log

PIPELINE, PARAMS = Path("dvc.yaml"), Path("params.yaml")
# it reads no data, so that what earlier stages have written still belongs together when it has ended
CODE = "code"


def run(
    first: Annotated[
        str | None, typer.Option("--from", help="Begin with this stage; those before it are kept.")
    ] = None,
) -> None:
    """Run all stages of dvc.yaml in their order, in this folder, without Git and DVC.

    Every stage runs, whether or not its inputs have changed; `dvc repro` runs only those that have to. Outputs that an
    earlier run left for later stages are deleted, so that results are never of two runs. After an error
    `mela run --from STAGE` goes on with the stage that failed.

    Example: `mela data check data/raw/mine --write params.yaml && mela run`
    """
    from mela.params import check_document

    commands = stage_commands(PIPELINE)
    if first is not None and first not in commands:
        raise MelaError(f"--from: expected one of {', '.join(commands)}, got {first!r}; correct it")
    check_document(PARAMS)
    names, outputs = list(commands), stage_outputs(PIPELINE)
    start = 0 if first is None else names.index(first)
    if start:
        log.info(f"run: not run again, as --from asks: {', '.join(names[:start])}")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([".", *filter(None, [os.environ.get("PYTHONPATH")])])}
    for number, name in enumerate(names[start:], start + 1):
        log.info(f"run: {name} ({number} of {len(names)})")
        ended = subprocess.run([sys.executable, "-m", *commands[name]], check=False, env=environment)  # noqa: S603
        if ended.returncode:
            raise MelaError(f"run: the stage {name} {_why(ended.returncode)} `mela run --from {name}`")
        if name != CODE and _delete(path for later in names[number:] for path in outputs[later]):
            log.info(f"run: deleted what an earlier run has left of the stages after {name}")
    log.info("run: all stages are done; `mela summary` prints the results")


def _why(status: int) -> str:
    """Say how a failed stage ended, and what to do before a command goes on."""
    if status >= 0:
        return f"ended with status {status}, for the reason above; correct it, then go on with"
    if -status == signal.SIGKILL:
        return (
            "was killed by the system, perhaps because memory ran out; use a machine with more, or lower "
            "data.image_size, embed.tasks_per_step or pretrain.batch_size, then go on with"
        )
    return f"was ended by the signal {signal.Signals(-status).name}; go on with"


def _delete(outputs: Iterable[Path]) -> bool:
    """Delete outputs, of links the link alone, and tell whether there were any."""
    found = [path for path in outputs if path.is_symlink() or path.exists()]
    for path in found:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return bool(found)


def stage_outputs(pipeline: Path) -> dict[str, list[Path]]:
    """Return the outputs of each stage of a pipeline: files and folders below the current one.

    Raises
    ------
    MelaError
        An output is none such.
    """
    from mela.blocks import read_yaml

    found: dict[str, list[Path]] = {}
    for name, stage in _cells(read_yaml(pipeline)["stages"]):
        entries = [entry for kind in ("outs", "metrics", "plots") for entry in stage.get(kind) or []]
        found[str(name)] = [Path(str(next(iter(entry)) if isinstance(entry, dict) else entry)) for entry in entries]
        for path in found[str(name)]:
            if path.is_absolute() or not path.parts or ".." in path.parts:
                raise MelaError(f"{pipeline}: {name}: expected outputs in this folder, got {str(path)!r}; correct it")
    return found


def _cells(stages: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the stages by their names, and those of a matrix over one list, or foreach, by the names that DVC gives."""
    for name, stage in stages.items():
        foreach, matrix = (stage.get(key) if isinstance(stage, dict) else None for key in ("foreach", "matrix"))
        if isinstance(foreach, dict):
            template, cells = stage["do"], {key: {"key": key} | _of_item(item) for key, item in foreach.items()}
        elif isinstance(matrix, dict) and len(matrix) == 1:
            ((key, values),) = matrix.items()
            template = {part: stage[part] for part in stage if part != "matrix"}
            cells = {value: _of_item({key: value}) for value in values}
        else:
            yield name, stage
            continue
        for cell, filled in cells.items():
            text = json.dumps(template)
            for variable, value in filled.items():
                text = text.replace(f"${{{variable}}}", str(value))
            yield f"{name}@{cell}", json.loads(text)


def _of_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables by which DVC fills in an item."""
    return {f"item.{key}": value for key, value in item.items()}


def stage_commands(pipeline: Path) -> dict[str, list[str]]:
    """Return the Python module of each stage of a pipeline and its arguments, in the order of the file.

    Raises
    ------
    MelaError
        The file is missing or no pipeline, or a stage is no Python module.
    """
    from mela.blocks import read_yaml

    if not pipeline.is_file():
        raise MelaError(
            f"{pipeline}: no such file; run `mela run` in a project, which `mela init` makes, or in a clone"
        )
    stages = read_yaml(pipeline).get("stages")
    if not isinstance(stages, dict) or not stages:
        raise MelaError(f"{pipeline}: expected stages, got none; use the file of the project")
    modules = {}
    for name, stage in _cells(stages):
        command = stage.get("cmd") if isinstance(stage, dict) else None
        found = re.fullmatch(r"python -m ([\w.]+( \w+)*)", command) if isinstance(command, str) else None
        if found is None:
            raise MelaError(f"{pipeline}: {name}: expected the command `python -m MODULE`, got {command!r}; correct it")
        modules[str(name)] = found[1].split()
    return modules
