"""Write the parameters of a data set for one seed."""

from pathlib import Path
from typing import Annotated

import typer
from ruamel.yaml import YAML

from benchmark import places
from mela.blocks import read_yaml
from mela.errors import MelaError
from mela.io.atomic import replacing, together
from mela.params import BLOCKS, EXTRA_BLOCKS, LabelerParams, RatesParams
from stages.common.run import run

MATRIX = places.BENCHMARK / "params.yaml"
METHODS = Path(__file__).parents[1] / "mela" / "methods"
SEEDED = ("embed", "labeler", "merging", "kmeans", "pretrain", "methods", "tuning")
# by the paper's Algorithm 2: guarded against pruning that runs away, and to the letter
PRUNED = {"pruned": {"guard": True}, "pruned_unguarded": {"guard": False}}


def main(
    data: Annotated[str, typer.Option()],
    seed: Annotated[int, typer.Option(min=0)],
    matrix: Annotated[Path, typer.Option(help="which methods there are")] = MATRIX,
) -> None:
    """Read the parameters of a data set; write them with the seed of everything that is trained or inferred.

    Images and tasks are drawn with the seeds that the data set has, so that all seeds meet the same. Every method on
    tasks gets an entry under `rates`, since DVC asks for the key on which the method's cell depends. The parameters of
    each way to prune are written beside them.
    """
    source = places.preset(data)
    require_complete(source)
    yaml = YAML()
    document = yaml.load(source.read_text(encoding="utf-8"))
    for block in SEEDED:
        document[block]["seed"] = seed
    rates = RatesParams.read(source).by_name
    document[RatesParams.block] = dict.fromkeys(read_yaml(matrix).get("task_methods") or []) | rates
    with together():
        for name, values in {"params": {}, **PRUNED}.items():
            document[LabelerParams.block].update(values)
            target = places.seeded(data, seed) / f"{name}.yaml"
            with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
                yaml.dump(document, file)


def require_complete(source: Path) -> None:
    """Raise MelaError unless a data set's file has all blocks of parameters, without a mistake."""
    for needed in (*BLOCKS, *EXTRA_BLOCKS):
        needed.read(source)
    known = sorted(path.stem for path in METHODS.glob("[!_]*.py"))
    for name in RatesParams.read(source).by_name:
        if name not in known:
            raise MelaError(
                f"{source}: rates.{name}: expected the name of a method, one of {', '.join(known)}; correct it, or "
                "remove it"
            )


if __name__ == "__main__":
    run(main)
