"""Pre-train on one kind of global labels, and write what comes of it."""

from dataclasses import asdict
from pathlib import Path

from mela.data.episodes import Episodes
from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.models.files import configure
from mela.runtime.console import log
from mela.training.checkpoint import steady
from mela.training.loop import curve_table
from mela.training.proposition1 import both_losses
from mela.training.targets import read_targets
from stages.common import paths
from stages.common.embedding_files import trained
from stages.common.pretraining import pretrain_on
from stages.common.pretraining_settings import Settings


def train_on_labels(labels: str, params: Path, images: Path, train: Path, weights: Path) -> None:
    """Write the embedding, losses and curve of labels that are compared, all empty if there are no such labels."""
    settings = Settings.read(params)
    table, stage, out = paths.LABELS / f"{labels}.parquet", f"pretrain@{labels}", trained(labels)
    with steady(images, train, table) as inputs:
        packed = store.open_images(images)
        targets = read_targets(table, soft=labels.endswith("_soft"))
        tasks = Episodes(read_manifest(train))
        configuration = configure(settings.model, packed, tasks.image_ids())
    if not len(targets.image_ids):
        out.write_nothing()
        log.info(f"{stage}: not trained, since there are no such labels")
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
