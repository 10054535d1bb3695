"""Pre-train an embedding on global labels (Eq. 7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from mela.data.array_types import Images
from mela.models.backbones import Backbone, build_backbone
from mela.models.timm_backbones import start_from
from mela.params import AugmentParams, ModelParams, PretrainParams, RuntimeParams
from mela.runtime.compute import Compute
from mela.training.checkpoint import Checkpoint
from mela.training.embeddings import pretrain
from mela.training.loop import Epoch, Schedule
from mela.training.targets import Targets
from stages.common.checkpoints import checkpoint
from stages.common.kept import Learned, learned_part
from stages.common.processes import computing
from stages.common.training import less_memory, training_of


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """Hold what `pretrain_on` returns: an embedding, what was trained of it, its classifier and its curve."""

    backbone: Backbone
    part: Learned
    classifier: nn.Linear
    epochs: list[Epoch]
    compute: Compute
    kept: Checkpoint

    @property
    def precision(self) -> str:
        """Name of the numbers that it was trained in."""
        return str(self.compute.dtype).removeprefix("torch.")

    def remove(self) -> None:
        """Delete the state of the training, once its results are written."""
        self.kept.remove()
        self.part.remove()


def pretrain_on(
    targets: Targets,
    stage: str,
    params: Path,
    packed: Images,
    configuration: dict[str, Any],
    inputs: Mapping[str, str],
    *,
    images: Path,
    weights: Path,
) -> Pretrained:
    """Pre-train an embedding on labels, by the blocks `pretrain`, `model` and `augment`.

    `packed` are all images, of the file `images`; `configuration` is that of `mela.models.files.configure`. `inputs`
    are the stage's files and their SHA-256, and `weights` is a folder.
    """
    settings, model_settings = PretrainParams.read(params), ModelParams.read(params)
    augment, runtime = AugmentParams.read(params), RuntimeParams.read(params)
    blocks = [settings, model_settings, augment]
    less = less_memory(settings, "batch_size")
    with computing(stage, "steps", runtime, model_settings.precision, less=less) as (device, compute, watch):
        schedule = Schedule(**settings.schedule())
        kept = checkpoint(stage, blocks, inputs, device, compute, runtime.checkpoint_seconds)
        backbone = build_backbone(**configuration, seed=settings.seed).to(device)
        start_from(backbone.body, model_settings.backbone, model_settings.weights, weights)
        file = {str(images): inputs[str(images)]}
        learned = (model_settings, augment, file, compute, watch)
        part = learned_part(stage, backbone, packed, targets.image_ids, *learned, epochs=settings.epochs)
        training = training_of(
            settings, part.augment, schedule, compute=compute, checkpoint=kept, watch=watch, name=stage
        )
        classifier, epochs = pretrain(part.backbone, part.images, targets, training, batch_size=settings.batch_size)
    return Pretrained(backbone=backbone, part=part, classifier=classifier, epochs=epochs, compute=compute, kept=kept)
