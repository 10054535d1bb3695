"""Meta-learn the initial embedding from the training tasks alone."""

from pathlib import Path

from mela.data.episodes import Episodes
from mela.io import store
from mela.io.atomic import together
from mela.io.checked_tables import read_manifest
from mela.models.backbones import build_backbone
from mela.models.files import configure, save_model
from mela.models.timm_backbones import start_from
from mela.params import PARAMS, AugmentParams, EmbedParams, ModelParams, RuntimeParams
from mela.runtime.console import log
from mela.training.checkpoint import steady
from mela.training.embeddings import train_embedding
from mela.training.loop import curve_table
from mela.training.schedule import Schedule
from stages.common import paths
from stages.common.checkpoints import checkpoint
from stages.common.computing import computing
from stages.common.learned_part import learned_part
from stages.common.processes import run_shared
from stages.common.training_setup import less_memory, training_of


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    weights: Path = paths.WEIGHTS,
    model: Path = paths.INITIAL,
    curve: Path = paths.EMBED_CURVE,
) -> None:
    """Read images and training tasks; write the initial embedding and its curve."""
    settings, model_settings = EmbedParams.read(params), ModelParams.read(params)
    augment, runtime = AugmentParams.read(params), RuntimeParams.read(params)
    with steady(images, train) as inputs:
        packed = store.open_images(images)
        tasks = Episodes(read_manifest(train))
        configuration = configure(model_settings, packed, tasks.image_ids())
    blocks = [settings, model_settings, augment]
    less = less_memory(settings, "tasks_per_step")
    with computing("embed", "steps", runtime, model_settings.precision, less=less) as (device, compute, watch):
        schedule = Schedule(**settings.schedule())
        kept = checkpoint("embed", blocks, inputs, device, compute, runtime.checkpoint_seconds)
        size, side = configuration["size"], configuration.get("side", 0)
        if compute.team.leads and side > size and model_settings.input_size is None:
            log.info(
                f"embed: images of {size} pixels are enlarged to {side}, the network's own side; a smaller "
                "model.input_size is faster, so try whether it is as good"
            )
        backbone = build_backbone(**configuration, seed=settings.seed).to(device)
        start_from(backbone.body, model_settings.backbone, model_settings.weights, weights)
        file = {str(images): inputs[str(images)]}
        learned = (model_settings, augment, file, compute, watch)
        part = learned_part("embed", backbone, packed, tasks.image_ids(), *learned, epochs=settings.epochs)
        epochs = train_embedding(
            part.backbone,
            part.images,
            tasks,
            training_of(settings, part.augment, schedule, compute=compute, checkpoint=kept, watch=watch),
            **settings.how(),
        )
    if compute.team.leads:
        with together():
            save_model(model, backbone, configuration)
            store.write_csv(curve, curve_table(epochs))
        kept.remove()
        part.remove()


if __name__ == "__main__":
    run_shared(main)
