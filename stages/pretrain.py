"""Learn an embedding by classifying one kind of global labels."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mela.data.episodes import Episodes
from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.models.files import configure
from mela.params import PARAMS, CompareParams
from mela.runtime.console import log
from mela.training.checkpoint import steady
from mela.training.loop import curve_table
from mela.training.proposition1 import both_losses
from mela.training.targets import read_targets
from stages.common import paths
from stages.common.embedding_files import not_trained, trained
from stages.common.pretraining import pretrain_on
from stages.common.pretraining_settings import Settings
from stages.common.processes import run_shared


def main(
    labels: Annotated[str, typer.Argument(help="Which: a name in data/labels, and a key of `compare`.")],
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    weights: Path = paths.WEIGHTS,
) -> None:
    """Read images and labels; write the embedding, losses and curve, all empty where the labels are not compared."""
    settings = Settings.read(params)
    table, stage, out = paths.LABELS / f"{labels}.parquet", f"pretrain@{labels}", trained(labels)
    compare = CompareParams.read(params)
    with steady(images, train, table) as inputs:
        packed = store.open_images(images)
        targets = read_targets(table, soft=labels.endswith("_soft"))
        tasks = Episodes(read_manifest(train))
        configuration = configure(settings.model, packed, tasks.image_ids())
    if reason := not_trained(getattr(compare, labels), targets):
        out.write_nothing()
        log.info(f"{stage}: {reason}")
        return
    found = pretrain_on(targets, stage, settings, packed, configuration, inputs, images=images, weights=weights)
    if not found.compute.team.leads:
        return
    losses = both_losses(found.part.backbone, found.classifier, found.part.images, tasks, targets)
    told = {"loss": found.epochs[-1].loss, "precision": found.precision, "proposition1": asdict(losses)}
    out.write(found.backbone, configuration, told, curve_table(found.epochs))
    found.remove()
    both = f"{losses.task_loss:.4f} over each task's classes <= {losses.global_loss:.4f} over all"
    log.info(f"{stage}: Proposition 1: {both}")


if __name__ == "__main__":
    run_shared(main)
