"""Train one method on tasks with local labels."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from benchmark.stages.method_training import own_schedule, prepared
from mela.data.episodes import Episodes
from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.methods import find_method
from mela.models.backbones import build_backbone
from mela.models.files import configure
from mela.params import MethodsParams, ModelParams, RatesParams, TuningParams
from mela.runtime.seeding import seeded
from mela.training.checkpoint import steady
from mela.training.learner_files import load_learned
from mela.training.on_tasks import train_on_tasks
from stages.common.run import run


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
    rates = RatesParams.read(params).only(method) if start is None else RatesParams()
    with steady(images, train, *([] if start is None else [start])) as inputs:
        packed = store.open_images(images)
        tasks = Episodes(read_manifest(train))
        configuration = configure(ModelParams.read(params), packed, tasks.image_ids())
    with prepared("methods", method, settings, params, inputs, rates) as one:
        with seeded(settings.seed):
            backbone = build_backbone(**configuration, seed=settings.seed)
            learner = find_method(method).build(backbone).to(one.device)
        if start is not None:
            learner.backbone.load_state_dict(load_learned(start, one.device, packed).backbone.state_dict())
        share = settings.rate if isinstance(settings, TuningParams) else 1
        schedule = own_schedule(settings, learner, share)
        if (rate := rates.by_name.get(method)) is not None:
            schedule = replace(schedule, learning_rate=rate, rate_name=f"rates.{method}")
        epochs = train_on_tasks(
            learner,
            packed,
            tasks,
            one.training_by(schedule),
            tasks_per_epoch=settings.tasks_per_epoch,
            tasks_per_step=settings.tasks_per_step,
        )
    one.save(out, learner, configuration, epochs)


if __name__ == "__main__":
    run(main)
