"""Train one method on tasks with local labels."""

from pathlib import Path
from typing import Annotated

import typer

from benchmark import places
from mela import store
from mela.atomic import together
from mela.augmentation import Augmentation
from mela.backbones import build_backbone
from mela.checked import read_manifest
from mela.checkpoints import steady
from mela.episodes import Episodes
from mela.learned import embedding, save_learner
from mela.meta_training import train_on_tasks
from mela.method import find_method
from mela.models import configure
from mela.params import AugmentParams, MethodsParams, ModelParams, RuntimeParams, TuningParams
from mela.seeding import seeded
from mela.training import Schedule, curve_table, log_epoch
from stages.checkpoints import checkpoint
from stages.processes import computing
from stages.run import run


def main(
    method: Annotated[str, typer.Option()],
    images: Annotated[Path, typer.Option()],
    train: Annotated[Path, typer.Option()],
    params: Annotated[Path, typer.Option()],
    out: Annotated[Path, typer.Option()],
    start: Annotated[Path | None, typer.Option(help="a pre-trained embedding to go on from")] = None,
) -> None:
    """Read images and training tasks; write what the method learned and its curve into a folder."""
    settings = MethodsParams.read(params) if start is None else TuningParams.read(params)
    model_settings = ModelParams.read(params)
    augment, runtime = AugmentParams.read(params), RuntimeParams.read(params)
    chosen = find_method(method)
    with steady(images, train, *([] if start is None else [start])) as inputs:
        packed = store.open_images(images)
        tasks = Episodes(read_manifest(train))
        configuration = configure(model_settings, packed, tasks.image_ids())
    stage = f"methods: {method}"
    with computing(stage, "steps", runtime, model_settings.precision) as (device, compute, watch):
        blocks = [settings, model_settings, augment]
        kept = checkpoint(f"methods-{method}", blocks, inputs, device, compute, runtime.checkpoint_seconds)
        with seeded(settings.seed):
            learner = chosen.learner(build_backbone(**configuration, seed=settings.seed)).to(device)
        if start is not None:
            learner.backbone.load_state_dict(embedding(start, device, packed).state_dict())
        rate = learner.learning_rate * (settings.rate if isinstance(settings, TuningParams) else 1)
        epochs = train_on_tasks(
            learner,
            packed,
            tasks,
            stage=settings.block,
            augmentation=Augmentation(**augment.model_dump()),
            schedule=Schedule(**settings.schedule(), learning_rate=rate, optimizer=learner.optimizer),
            tasks_per_epoch=settings.tasks_per_epoch,
            tasks_per_step=settings.tasks_per_step,
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
