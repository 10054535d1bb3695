"""Learn an embedding by classifying one kind of global labels."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mela.data.episodes import Episodes
from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.models.backbones import build_backbone
from mela.models.files import configure
from mela.models.timm_backbones import start_from
from mela.params import PARAMS, AugmentParams, CompareParams, ModelParams, PretrainParams, RuntimeParams
from mela.runtime.console import log
from mela.training.checkpoint import steady
from mela.training.embeddings import pretrain
from mela.training.loop import Schedule, curve_table
from mela.training.proposition1 import both_losses
from mela.training.targets import read_targets
from stages.common import paths
from stages.common.checkpoints import checkpoint
from stages.common.kept import learned_part
from stages.common.processes import computing, run_shared
from stages.common.trained import not_trained, trained
from stages.common.training import less_memory, training_of


def main(
    labels: Annotated[str, typer.Argument(help="Which: a name in data/labels, and a key of `compare`.")],
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    weights: Path = paths.WEIGHTS,
) -> None:
    """Read images and labels; write the embedding, losses and curve, all empty where the labels are not compared."""
    settings, model_settings = PretrainParams.read(params), ModelParams.read(params)
    augment, runtime = AugmentParams.read(params), RuntimeParams.read(params)
    table, stage, out = paths.LABELS / f"{labels}.parquet", f"pretrain@{labels}", trained(labels)
    with steady(images, train, table) as inputs:
        packed = store.open_images(images)
        targets = read_targets(table, soft=labels.endswith("_soft"))
        tasks = Episodes(read_manifest(train))
        configuration = configure(model_settings, packed, tasks.image_ids())
    if reason := not_trained(getattr(CompareParams.read(params), labels), targets):
        out.write_nothing()
        log.info(f"{stage}: {reason}")
        return
    blocks = [settings, model_settings, augment]
    less = less_memory(settings, "batch_size")
    with computing(stage, "steps", runtime, model_settings.precision, less=less) as (device, compute, watch):
        schedule = Schedule(**settings.schedule())
        kept = checkpoint(stage, blocks, inputs, device, compute, runtime.checkpoint_seconds)
        backbone = build_backbone(**configuration, seed=settings.seed).to(device)
        start_from(backbone.body, model_settings.backbone, model_settings.weights, weights)
        file = {str(images): inputs[str(images)]}
        learned = (model_settings, augment, file, compute, watch)
        part = learned_part(stage, backbone, packed, targets.image_ids, *learned, epochs=settings.epochs)
        training = training_of(
            settings, part.augment, schedule, compute=compute, checkpoint=kept, watch=watch, name=stage
        )
        classifier, epochs = pretrain(part.backbone, part.images, targets, training, batch_size=settings.batch_size)
    if not compute.team.leads:
        return
    precision = str(compute.dtype).removeprefix("torch.")
    losses = both_losses(part.backbone, classifier, part.images, tasks, targets)
    told = {"loss": epochs[-1].loss, "precision": precision, "proposition1": asdict(losses)}
    out.write(backbone, configuration, told, curve_table(epochs))
    kept.remove()
    part.remove()
    both = f"{losses.task_loss:.4f} over each task's classes <= {losses.global_loss:.4f} over all"
    log.info(f"{stage}: Proposition 1: {both}")


if __name__ == "__main__":
    run_shared(main)
