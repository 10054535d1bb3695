"""Meta-learn the initial embedding from the training tasks alone."""

from pathlib import Path

import pandas as pd

from mela import store
from mela.augmentation import Augmentation
from mela.backbones import build_backbone
from mela.device import choose_device
from mela.embedding import train_embedding
from mela.episodes import Episodes
from mela.models import configure, save_model
from mela.params import PARAMS, AugmentParams, EmbedParams, ModelParams, RuntimeParams
from mela.training import Schedule, print_epoch
from stages import paths
from stages.run import run


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    model: Path = paths.INITIAL,
    curve: Path = paths.EMBED_CURVE,
) -> None:
    """Read images and training tasks; write the initial embedding and its curve."""
    settings = EmbedParams.read(params)
    packed = store.open_images(images)
    tasks = Episodes(store.read_table(train, store.MANIFEST))
    configuration = configure(ModelParams.read(params), packed, tasks.image_ids())
    backbone = build_backbone(**configuration, seed=settings.seed).to(choose_device(RuntimeParams.read(params).device))
    epochs = train_embedding(
        backbone,
        packed,
        tasks,
        augmentation=Augmentation(**AugmentParams.read(params).model_dump()),
        schedule=Schedule(**settings.schedule()),
        tasks_per_epoch=settings.tasks_per_epoch,
        ridge=settings.ridge,
        normalize=settings.normalize,
        seed=settings.seed,
        on_epoch=print_epoch("embed", settings.epochs),
    )
    save_model(model, backbone, configuration)
    store.write_csv(curve, pd.DataFrame(epochs))


if __name__ == "__main__":
    run(main)
