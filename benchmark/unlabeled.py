"""Train one method on images alone."""

from pathlib import Path
from typing import Annotated

import typer

from benchmark.training import training
from mela import store
from mela.augmentation import NONE
from mela.backbones import build_backbone
from mela.checkpoints import steady
from mela.flat_training import train_on_images
from mela.method import find_method
from mela.models import configure
from mela.params import ModelParams, PretrainParams
from mela.seeding import seeded
from mela.training import Schedule
from stages.run import run


def main(
    method: Annotated[str, typer.Option()],
    images: Annotated[Path, typer.Option()],
    listing: Annotated[Path, typer.Option(help="which images")],
    params: Annotated[Path, typer.Option()],
    out: Annotated[Path, typer.Option()],
) -> None:
    """Read images; write what the method learned and its curve into a folder."""
    settings = PretrainParams.read(params)
    with steady(images, listing) as inputs:
        packed = store.open_images(images)
        image_ids = store.read_table(listing, store.LISTING)["image_id"].to_numpy()
        configuration = configure(ModelParams.read(params), packed, image_ids)
    with training("images", method, settings, params, inputs) as one:
        with seeded(settings.seed):
            backbone = build_backbone(**configuration, seed=settings.seed)
            learner = find_method(method).learner(backbone, len(image_ids)).to(one.device)
        own = {"learning_rate": learner.learning_rate, "optimizer": learner.optimizer}
        own["rate_name"] = f"learning_rate of {type(learner).__name__}"
        # each view of an image is changed by itself
        learner.augmentation, one.options["augmentation"] = one.options["augmentation"], NONE
        epochs = train_on_images(
            learner,
            packed,
            image_ids,
            learner.loss,
            schedule=Schedule(**settings.schedule() | own),
            batch_size=settings.batch_size,
            **one.options,
        )
    one.save(out, learner, configuration, epochs)


if __name__ == "__main__":
    run(main)
