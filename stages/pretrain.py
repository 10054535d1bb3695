"""Learn the final embedding by classifying the chosen global labels."""

from dataclasses import asdict
from pathlib import Path

from mela.data.episodes import Episodes
from mela.io import store
from mela.io.atomic import together
from mela.io.checked_tables import read_manifest
from mela.models.backbones import build_backbone
from mela.models.files import configure, save_model
from mela.models.timm_backbones import start_from
from mela.params import PARAMS, AugmentParams, ModelParams, PretrainParams, RuntimeParams
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
from stages.common.training import less_memory, training_of


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    labels: Path | None = None,
    weights: Path = paths.WEIGHTS,
    model: Path = paths.FINAL,
    metrics: Path = paths.PRETRAIN_METRICS,
    curve: Path = paths.PRETRAIN_CURVE,
) -> None:
    """Read images and labels (those that pretrain.labels names); write the final embedding, losses and curve."""
    settings, model_settings = PretrainParams.read(params), ModelParams.read(params)
    augment, runtime = AugmentParams.read(params), RuntimeParams.read(params)
    labels = labels or paths.LABELS / f"{settings.labels}.parquet"
    with steady(images, train, labels) as inputs:
        packed = store.open_images(images)
        targets = read_targets(labels, soft=settings.labels.endswith("_soft"))
        tasks = Episodes(read_manifest(train))
        configuration = configure(model_settings, packed, tasks.image_ids())
    blocks = [settings, model_settings, augment]
    less = less_memory(settings, "batch_size")
    with computing("pretrain", "steps", runtime, model_settings.precision, less=less) as (device, compute, watch):
        schedule = Schedule(**settings.schedule())
        kept = checkpoint("pretrain", blocks, inputs, device, compute, runtime.checkpoint_seconds)
        backbone = build_backbone(**configuration, seed=settings.seed).to(device)
        start_from(backbone.body, model_settings.backbone, model_settings.weights, weights)
        file = {str(images): inputs[str(images)]}
        learned = (model_settings, augment, file, compute, watch)
        part = learned_part("pretrain", backbone, packed, targets.image_ids, *learned, epochs=settings.epochs)
        classifier, epochs = pretrain(
            part.backbone,
            part.images,
            targets,
            training_of(settings, part.augment, schedule, compute=compute, checkpoint=kept, watch=watch),
            batch_size=settings.batch_size,
        )
    if not compute.team.leads:
        return
    precision = str(compute.dtype).removeprefix("torch.")
    told = {"labels": settings.labels, "loss": epochs[-1].loss, "precision": precision}
    losses = both_losses(part.backbone, classifier, part.images, tasks, targets)
    with together():
        save_model(model, backbone, configuration)
        store.write_csv(curve, curve_table(epochs))
        store.write_json(metrics, told | {"proposition1": asdict(losses)})
    kept.remove()
    part.remove()
    both = f"{losses.task_loss:.4f} over each task's classes <= {losses.global_loss:.4f} over all"
    log.info(f"pretrain: Proposition 1: {both}")


if __name__ == "__main__":
    run_shared(main)
