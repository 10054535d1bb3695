"""The cells that are due: not measured, or measured with other code, data or parameters than there are now.

In a clone the models of what is measured are missing, and DVC would train all of them anew; told of these cells it
trains them, and what they go on from.
"""

from functools import cache
from pathlib import Path

import typer
from dvc.repo import Repo
from dvc.stage import Stage

from benchmark import code, places, settings
from benchmark.matrix import PARAMS, Matrix
from mela.output import ending_in_one_line

MEASURED = ("test_", "score_labels")
# what these make is written anew here, and tells the stages that read it whether anything has changed
CODE, SETTINGS = "code_", "settings"


def due(repo: Repo) -> list[str]:
    """Names of the benchmark's cells; all that the stages of code and settings make has to be up to date."""
    graph = repo.index.graph

    @cache
    def stale(stage: Stage) -> bool:
        return has_changed(stage) or any(map(stale, graph.successors(stage)))

    cells = [stage for stage in repo.index.stages if stage.name.startswith(MEASURED)]
    # results are in Git; what else a cell makes is in DVC's cache, and in no clone
    return [cell.name for cell in cells if stale(cell) or not all(out.exists or out.use_cache for out in cell.outs)]


def has_changed(stage: Stage) -> bool:
    """Whether a stage has never run, or not with what lies there now; what is missing counts as it was."""
    if stage.name.startswith((CODE, SETTINGS)):
        return False
    if stage.changed_stage() or not all(dep.hash_info for dep in stage.deps):
        return True
    return any(dep.exists and dep.status() for dep in stage.deps)


def main(params: Path = PARAMS) -> None:
    """Print the names of the cells that are due, a line each."""
    matrix, repo = Matrix.read(params), Repo(str(places.BENCHMARK))
    for stage in repo.index.stages:
        if stage.name.startswith(CODE):
            kind = stage.name.removeprefix(CODE)
            code.main(kind=kind, out=places.RUNS / "code" / f"{kind}.json")
    for data in matrix.data:
        for seed in matrix.seeds:
            settings.main(data=data, seed=seed)
    for name in due(repo):
        typer.echo(name)


if __name__ == "__main__":
    with ending_in_one_line():
        typer.run(main)
