"""Choose what is trained of an embedding: all of it from images, or a head from kept features."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mela.data.array_types import Images
from mela.models.backbones import Backbone
from mela.params import AugmentParams, ModelParams
from mela.runtime.compute import Compute
from mela.runtime.console import log
from mela.runtime.progress import Watch
from mela.training.kept_features import keep_features
from stages.common.checkpoints import FOLDER

UNCHANGED = AugmentParams(crop_padding=0, flip=False, jitter=0.0)


@dataclass(frozen=True, kw_only=True)
class LearnedPart:
    """Hold the part of an embedding that is trained, and its data.

    Attributes
    ----------
    backbone : Backbone
        Trained wherever it can be; the whole embedding learns with it.
    images : array
        The packed images, or what takes their place.
    augment : AugmentParams
        Random changes of them.
    remove : callable
        Deletes what was kept on disk for the training.
    """

    backbone: Backbone
    images: Images
    augment: AugmentParams
    remove: Callable[[], None] = lambda: None


def learned_part(
    stage: str,
    backbone: Backbone,
    images: Images,
    image_ids: npt.NDArray[np.int64],
    model: ModelParams,
    augment: AugmentParams,
    files: Mapping[str, str],
    compute: Compute,
    watch: Watch,
    *,
    epochs: int,
) -> LearnedPart:
    """Return all of a backbone, or its head alone if the network is frozen and its features are to be kept.

    Parameters
    ----------
    backbone, images, image_ids, files
        See `mela.training.kept_features.keep_features`.
    epochs : int
        How long the training is; for none of them nothing is kept.
    """
    if model.train != "head" or not model.keep_features or not epochs:
        return LearnedPart(backbone=backbone, images=images, augment=augment)
    if compute.team.leads:
        log.info(
            f"{stage}: the network's features of {len(image_ids):,} images are computed once, without augmentation "
            "(model.keep_features)"
        )
    kept = keep_features(backbone, images, image_ids, folder=FOLDER, files=files, team=compute.team, watch=watch)
    return LearnedPart(backbone=kept.backbone, images=kept.images, augment=UNCHANGED, remove=kept.remove)
