"""Learn an embedding by classifying one kind of global labels."""

from pathlib import Path
from typing import Annotated

import typer

from mela.errors import MelaError
from mela.params import LABELS, PARAMS, CompareParams
from mela.runtime.console import log
from stages.common import paths
from stages.common.embedding_files import trained
from stages.common.processes import run_shared


def main(
    labels: Annotated[str, typer.Argument(help="Which: a name in data/labels, and a key of `compare`.")],
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    weights: Path = paths.WEIGHTS,
) -> None:
    """Read images and labels; write the embedding, losses and curve, all empty where the labels are not compared."""
    compare = CompareParams.read(params)
    if labels not in LABELS:
        raise MelaError(f"pretrain: expected labels that are one of {', '.join(LABELS)}, got {labels!r}; correct them")
    if not getattr(compare, labels):
        trained(labels).write_nothing()
        log.info(f"pretrain@{labels}: not trained, since `compare` has it off")
        return
    # takes seconds, which labels that are off need not wait for
    from stages.common.label_training import train_on_labels

    train_on_labels(labels, params, images, train, weights)


if __name__ == "__main__":
    run_shared(main)
