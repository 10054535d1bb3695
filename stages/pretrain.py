"""Learn the final embedding by classifying the chosen global labels."""

from pathlib import Path

import pandas as pd

from mela import store
from mela.atomic import together
from mela.augmentation import Augmentation
from mela.backbones import build_backbone
from mela.checked import read_manifest
from mela.checkpoints import steady
from mela.episodes import Episodes
from mela.models import configure, save_model
from mela.params import PARAMS, AugmentParams, ModelParams, PretrainParams, RuntimeParams
from mela.pretraining import both_losses, pretrain
from mela.targets import read_targets
from mela.training import Schedule, print_epoch
from stages import paths
from stages.checkpoints import checkpoint
from stages.processes import computing, run_shared


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    labels: Path | None = None,
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
    with computing(runtime, model_settings.precision) as (device, compute):
        kept = checkpoint("pretrain", blocks, inputs, device, compute, runtime.checkpoint_seconds)
        backbone = build_backbone(**configuration, seed=settings.seed).to(device)
        classifier, epochs = pretrain(
            backbone,
            packed,
            targets,
            augmentation=Augmentation(**augment.model_dump()),
            schedule=Schedule(**settings.schedule()),
            batch_size=settings.batch_size,
            accumulate=settings.accumulate,
            seed=settings.seed,
            compute=compute,
            checkpoint=kept,
            on_epoch=print_epoch("pretrain", settings.epochs),
        )
    if not compute.team.leads:
        return
    losses = both_losses(backbone, classifier, packed, tasks, targets)
    with together():
        save_model(model, backbone, configuration)
        store.write_csv(curve, pd.DataFrame(epochs))
        store.write_json(
            metrics,
            {
                "labels": settings.labels,
                "loss": epochs[-1].loss,
                "precision": str(compute.dtype).removeprefix("torch."),
                "proposition1": {"task_loss": losses.task_loss, "global_loss": losses.global_loss},
            },
        )
    kept.remove()
    both = f"{losses.task_loss:.4f} over each task's classes <= {losses.global_loss:.4f} over all"
    print(f"pretrain: Proposition 1: {both}")


if __name__ == "__main__":
    run_shared(main)
