"""Parameters of a data set for one seed."""

from pathlib import Path
from typing import Annotated

import typer
from ruamel.yaml import YAML

from benchmark import places
from mela.atomic import replacing
from mela.params import BLOCKS, EXTRA_BLOCKS
from stages.run import run

SEEDED = ("embed", "labeler", "kmeans", "pretrain", "methods", "tuning")


def main(data: Annotated[str, typer.Option()], seed: Annotated[int, typer.Option(min=0)]) -> None:
    """Read the parameters of a data set; write them with the seed of everything that is trained or inferred.

    Images and tasks are drawn with the seeds that the data set has, so that all seeds meet the same.
    """
    source = places.preset(data)
    require_complete(source)
    yaml = YAML()
    document = yaml.load(source.read_text(encoding="utf-8"))
    for block in SEEDED:
        document[block]["seed"] = seed
    target = places.seeded(data, seed) / "params.yaml"
    with replacing(target) as temporary, temporary.open("w", encoding="utf-8") as file:
        yaml.dump(document, file)


def require_complete(source: Path) -> None:
    """Raise MelaError unless a data set's file has all blocks of parameters, without a mistake."""
    for needed in (*BLOCKS, *EXTRA_BLOCKS):
        needed.read(source)


if __name__ == "__main__":
    run(main)
