"""Build the trainings of stages from their parameters."""

from typing import TYPE_CHECKING

from mela.data.augmentation import Augmentation
from mela.params import AugmentParams
from mela.runtime.compute import Compute
from mela.runtime.progress import Watch
from mela.training.checkpoint import Checkpoint
from mela.training.loop import Training, log_epoch
from mela.training.schedule import Schedule

if TYPE_CHECKING:
    # a stage depends on the block that it reads, and not on those of other trainings
    from mela.params import EmbedParams, MethodsParams, PretrainParams


def training_of(
    settings: "EmbedParams | PretrainParams | MethodsParams",
    augment: AugmentParams,
    schedule: Schedule,
    *,
    compute: Compute,
    checkpoint: Checkpoint,
    watch: Watch,
    name: str = "",
) -> Training:
    """Return a training by the parameters of its block.

    Parameters
    ----------
    settings, augment
        Blocks of parameters.
    schedule, compute, checkpoint, watch
        See `mela.training.loop.Training`.
    name : str
        What lines of progress begin with; by default the name of the block.
    """
    return Training(
        stage=settings.block,
        schedule=schedule,
        seed=settings.seed,
        augmentation=Augmentation(**augment.model_dump()),
        rotated_classes=settings.rotated_classes,
        accumulate=settings.accumulate,
        compute=compute,
        checkpoint=checkpoint,
        on_epoch=log_epoch(name or settings.block, settings.epochs),
        watch=watch,
    )


def less_memory(settings: "EmbedParams | PretrainParams", part: str) -> str:
    """Return which parameters of a training lower its memory; `part` names the size of a step."""
    size, accumulate, block = getattr(settings, part), settings.accumulate, settings.block
    parts = ""
    if size > accumulate:
        parts = f"raise {block}.accumulate (now {accumulate}), lower {block}.{part} (now {size}), "
    return f"{parts}lower data.image_size or model.width, or use a machine with more"
