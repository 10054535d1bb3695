"""Train one method on images with global labels."""

from pathlib import Path
from typing import Annotated

import typer

from benchmark import places
from mela import store
from mela.atomic import together
from mela.augmentation import Augmentation
from mela.backbones import build_backbone
from mela.checkpoints import steady
from mela.errors import MelaError
from mela.label_learner import LabelLearner
from mela.label_training import train_on_labels
from mela.learned import load_learner, save_learner
from mela.method import find_method
from mela.models import configure
from mela.params import AugmentParams, ModelParams, PretrainParams, RuntimeParams
from mela.seeding import seeded
from mela.targets import read_targets
from mela.training import Schedule, curve_table, log_epoch
from stages.checkpoints import checkpoint
from stages.processes import computing
from stages.run import run


def main(
    method: Annotated[str, typer.Option()],
    images: Annotated[Path, typer.Option()],
    labels: Annotated[Path, typer.Option()],
    params: Annotated[Path, typer.Option()],
    out: Annotated[Path, typer.Option()],
    teacher: Annotated[Path | None, typer.Option(help="the former generation, for distillation")] = None,
) -> None:
    """Read images and their labels; write what the method learned and its curve into a folder."""
    settings, model_settings = PretrainParams.read(params), ModelParams.read(params)
    augment, runtime = AugmentParams.read(params), RuntimeParams.read(params)
    with steady(images, labels, *([] if teacher is None else [teacher])) as inputs:
        packed, targets = store.open_images(images), read_targets(labels, soft=False)
        configuration = configure(model_settings, packed, targets.image_ids)
    stage = f"labels: {method}"
    with computing(stage, "steps", runtime, model_settings.precision) as (device, compute, watch):
        blocks = [settings, model_settings, augment]
        kept = checkpoint(f"labels-{method}", blocks, inputs, device, compute, runtime.checkpoint_seconds)
        backbone = build_backbone(**configuration, seed=settings.seed)
        with seeded(settings.seed):
            learner = find_method(method).learner(backbone, targets.n_labels).to(device)
        if teacher is not None:
            former = load_learner(teacher, device)
            if not isinstance(former, LabelLearner):
                raise MelaError(f"{teacher}: expected an embedding with a classifier, got one without; train it again")
            learner.learn_from(former)
        epochs = train_on_labels(
            learner,
            packed,
            targets,
            stage="pretrain",
            augmentation=Augmentation(**augment.model_dump()),
            schedule=Schedule(**settings.schedule()),
            batch_size=settings.batch_size,
            accumulate=settings.accumulate,
            seed=settings.seed,
            compute=compute,
            checkpoint=kept,
            on_epoch=log_epoch(stage, settings.epochs),
            watch=watch,
        )
    with together():
        save_learner(out / places.MODEL, learner, method, configuration)
        store.write_csv(out / places.CURVE, curve_table(epochs))
    kept.remove()


if __name__ == "__main__":
    run(main)
