"""Learn the final embedding by classifying the chosen global labels."""

from dataclasses import asdict
from pathlib import Path

from mela import store
from mela.atomic import together
from mela.backbones import build_backbone
from mela.checked import read_manifest
from mela.checkpoints import steady
from mela.episodes import Episodes
from mela.models import configure, save_model
from mela.output import log
from mela.params import PARAMS, AugmentParams, ModelParams, PretrainParams, RuntimeParams
from mela.pretrained import start_from
from mela.pretraining import both_losses, pretrain
from mela.targets import read_targets
from mela.training import Schedule, curve_table
from stages import paths
from stages.checkpoints import checkpoint
from stages.kept import learned_part
from stages.processes import computing, run_shared
from stages.training import less_memory, training_of


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
