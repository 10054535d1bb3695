"""Find the cells that are due: not measured, or measured with other code, data or parameters than now.

In a clone the models of what is measured are missing, and DVC would train all of them again; told of these cells it
trains them, and what they go on from. On another processor that has other bits, and then other cells that go on from it
are due next.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, reduce
from operator import getitem
from pathlib import Path
from typing import Annotated

import typer
from dvc.dependency import Dependency, ParamsDependency
from dvc.exceptions import DvcException
from dvc.output import Output
from dvc.repo import Repo
from dvc.stage import Stage
from dvc_data.hashfile.hash_info import HashInfo

from benchmark import places, settings
from benchmark.matrix import PARAMS, Matrix
from benchmark.outdated_marks import write_outdated
from mela.blocks import read_yaml
from mela.errors import MelaError, one_line
from mela.runtime.console import ending_in_one_line
from stages import code

MEASURED = ("test_", "score_inferred")
# what these make is written anew here, and tells the stages that read it whether anything has changed
NOT_JUDGED = ("code", "settings")


def due(repo: Repo) -> list[Stage]:
    """Return the benchmark's cells that are due; outputs of the stages of code and settings must be up to date."""
    graph = repo.index.graph
    locked = {out.fs_path: out.hash_info for stage in repo.index.stages for out in stage.outs}

    @cache
    def stale(stage: Stage) -> bool:
        return has_changed(stage, locked) or any(map(stale, graph.successors(stage)))

    cells = [stage for stage in repo.index.stages if stage.name.startswith(MEASURED)]
    return [cell for cell in cells if stale(cell) or not all(map(is_there, cell.outs))]


def outdated(cells: Iterable[Stage]) -> Iterator[tuple[str, str, int]]:
    """Yield data set, system and seed of the due cells that have accuracies, which are then of an earlier state."""
    for cell in cells:
        for out in cell.outs:
            path = Path(out.fs_path)
            if path.suffix == ".parquet" and path.is_file():
                data, seed = path.parts[-3:-1]
                yield data, path.stem, int(seed.removeprefix("seed"))


def has_changed(stage: Stage, locked: Mapping[str, HashInfo]) -> bool:
    """Tell whether a stage has never run, or not with the present inputs.

    Parameters
    ----------
    stage : Stage
    locked : mapping of str to HashInfo
        What stages have made, by its path: it stands for files that are missing.
    """
    if stage.name.startswith(NOT_JUDGED):
        return False
    if stage.changed_stage() or not all(dep.hash_info for dep in stage.deps):
        return True
    return any(
        _differs(dep) if dep.exists else locked.get(dep.fs_path, dep.hash_info) != dep.hash_info for dep in stage.deps
    )


def _differs(dep: Dependency) -> bool:
    """Tell whether a file is not as the lock has it; DVC would parse parameters again for each stage."""
    if not isinstance(dep, ParamsDependency):
        return bool(dep.status())
    locked = dep.hash_info.value
    try:
        document = read_yaml(Path(dep.fs_path))
        return any(reduce(getitem, name.split("."), document) != locked[name] for name in dep.params or locked)
    except (KeyError, TypeError):
        # a parameter is missing in the file or in the lock
        return True


def is_there(out: Output) -> bool:
    """Tell whether a cell's output in Git is as the lock has it; those in DVC's cache, which no clone has, count."""
    return bool(out.use_cache or (out.exists and not out.status()))


def main(
    params: Path = PARAMS,
    mark: Annotated[bool, typer.Option(help="Also list the results that tables are to mark as outdated.")] = False,
) -> None:
    """Print the names of the cells that are due, a line each."""
    matrix = Matrix.read(params)
    try:
        cells = _due_after_update(matrix, params)
    except DvcException as error:
        raise MelaError(
            f"{places.BENCHMARK}: expected dvc.yaml and dvc.lock that DVC can read, got {one_line(error)}; correct "
            "them, or take those of the last commit"
        ) from error
    if mark:
        write_outdated(places.RESULTS, outdated(cells))
    for cell in cells:
        typer.echo(cell.name)


def _due_after_update(matrix: Matrix, params: Path) -> list[Stage]:
    """Return the cells that are due after code hashes and settings are written for the current state."""
    repo = Repo(str(places.BENCHMARK))
    code.main(benchmark=True)
    for data in matrix.data:
        for seed in matrix.seeds:
            settings.main(data=data, seed=seed, matrix=params)
    return due(repo)


if __name__ == "__main__":
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    with ending_in_one_line():
        app()
