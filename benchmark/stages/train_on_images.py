"""Train one method on images alone."""

from pathlib import Path
from typing import Annotated

import typer

from benchmark.stages.method_training import own_schedule, prepared
from mela.io import schemas, store
from mela.methods import find_method
from mela.models.backbones import build_backbone
from mela.models.files import configure
from mela.params import ModelParams, PretrainParams
from mela.runtime.seeding import seeded
from mela.training.checkpoint import steady
from mela.training.on_images import train_without_labels
from stages.common.run import run


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
        image_ids = store.read_table(listing, schemas.LISTING)["image_id"].to_numpy()
        configuration = configure(ModelParams.read(params), packed, image_ids)
    with prepared("images", method, settings, params, inputs) as one:
        with seeded(settings.seed):
            backbone = build_backbone(**configuration, seed=settings.seed)
            learner = find_method(method).build(backbone, len(image_ids)).to(one.device)
        epochs = train_without_labels(
            learner,
            packed,
            image_ids,
            one.training_by(own_schedule(settings, learner)),
            batch_size=settings.batch_size,
        )
    one.save(out, learner, configuration, epochs)


if __name__ == "__main__":
    run(main)
