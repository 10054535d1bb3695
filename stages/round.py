"""Train an embedding on the labels that are known so far, so that people's looks count less than in the one before."""

from pathlib import Path
from typing import Annotated

import typer

from mela.params import PARAMS, RoundName, RoundsParams
from mela.runtime.console import log
from stages.common import paths
from stages.common.processes import run_shared
from stages.common.round_files import before_round, pass_on


def main(
    number: Annotated[RoundName, typer.Argument(help="Which.")],
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    weights: Path = paths.WEIGHTS,
    sources: Path = paths.TASK_SOURCES,
    names: Path = paths.TASK_NAMES,
) -> None:
    """Read images, and features, looks and embedding of the round before; write those of this one, or the same if off.

    The first round tells all task classes apart. Each other one learns the classes that merging finds by the features
    of the round before.
    """
    if not getattr(RoundsParams.read(params), number):
        pass_on(number, before_round(number))
        log.info(f"round@{number}: off, so that features stay as they are")
        return
    # takes seconds, which a round that is off need not wait for
    from stages.common.round_training import train_round

    train_round(number, params, images, train, weights, sources, names)


if __name__ == "__main__":
    run_shared(main)
