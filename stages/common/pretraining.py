"""Pre-train an embedding on global labels (Eq. 7)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mela.data.array_types import Images
from mela.models.backbones import build_backbone
from mela.models.timm_backbones import start_from
from mela.training.checkpoint import digest_of
from mela.training.embeddings import pretrain
from mela.training.schedule import Schedule
from mela.training.targets import Targets
from stages.common.checkpoints import checkpoint
from stages.common.computing import computing
from stages.common.learned_part import learned_part
from stages.common.pretraining_settings import Pretrained, Settings
from stages.common.training_setup import less_memory, training_of


def pretrain_on(
    targets: Targets,
    stage: str,
    blocks: Settings,
    packed: Images,
    configuration: dict[str, Any],
    inputs: Mapping[str, str],
    *,
    images: Path,
    weights: Path,
) -> Pretrained:
    """Pre-train an embedding on labels of packed images, which are in the file `images`.

    `configuration` is that of `mela.models.files.configure`; `inputs` are the stage's files and their SHA-256.
    """
    settings, model_settings, augment, runtime = blocks
    less = less_memory(settings, "batch_size")
    with computing(stage, "steps", runtime, model_settings.precision, less=less) as (device, compute, watch):
        schedule = Schedule(**settings.schedule())
        # labels that a stage finds itself rest on more parameters and files than a training reads
        tasks = [] if targets.tasks is None else [targets.tasks]
        known = torch.from_numpy(np.stack([targets.image_ids, targets.labels, *tasks]))
        inputs = {**inputs, "labels": digest_of({"known": known})}
        kept = checkpoint(stage, blocks[:3], inputs, device, compute, runtime.checkpoint_seconds)
        backbone = build_backbone(**configuration, seed=settings.seed).to(device)
        start_from(backbone.body, model_settings.backbone, model_settings.weights, weights)
        file = {str(images): inputs[str(images)]}
        learned = (model_settings, augment, file, compute, watch)
        part = learned_part(stage, backbone, packed, targets.image_ids, *learned, epochs=settings.epochs)
        training = training_of(
            settings, part.augment, schedule, compute=compute, checkpoint=kept, watch=watch, name=stage
        )
        how: dict[str, Any] = {"batch_size": settings.batch_size, "label_smoothing": settings.label_smoothing}
        classifier, epochs = pretrain(part.backbone, part.images, targets, training, **how)
    return Pretrained(backbone=backbone, part=part, classifier=classifier, epochs=epochs, compute=compute, kept=kept)
