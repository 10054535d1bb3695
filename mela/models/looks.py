"""Measure how the features of a task class move when somebody else takes its photographs."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.data.array_types import Floats, Ints
from mela.data.augmentation import NONE, Augmentation, Changes
from mela.data.images import ImageLoader
from mela.models.backbones import Backbone
from mela.models.features import extract_features

LOOKS, IMAGES, CLASSES = 4, 4, 1000


def look_covariance(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    image_ids: Ints,
    classes: Ints,
    augmentation: Augmentation,
    *,
    seed: int,
) -> Floats | None:
    r"""Return the covariance (m, m) of a task class's mean under random looks.

    A look is one draw of the augmentation for all images of a task class, as if they were another person's: brightness,
    colours, rotation, size, blur and surroundings. Crops and mirroring are nobody's look. Of each task class, 4 images
    are seen under 4 looks, and their means :math:`x_{cv}` give

    .. math:: L = \frac{1}{3 n} \sum_{c=1}^n \sum_{v=1}^4 (x_{cv} - \bar x_c) (x_{cv} - \bar x_c)^\top.

    Parameters
    ----------
    backbone : Backbone
    images : uint8 (N, h, w, c)
    image_ids : int64 (n_samples,)
        Image of each sample.
    classes : int64 (n_samples,)
        Task class of each sample, rising from 0. Of more than 1,000, so many are drawn.
    augmentation : Augmentation
    seed : int

    Returns
    -------
    float64 (m, m) or None
        None where the augmentation has no looks, or nothing moves.
    """
    looks = replace(augmentation, crop_padding=0, flip=False)
    if looks == NONE:
        return None
    sizes = np.bincount(classes)
    drawn = np.random.default_rng(seed).permutation(len(sizes))[:CLASSES]
    chosen = np.sort(drawn)
    first, sizes = (np.cumsum(sizes) - sizes)[chosen], sizes[chosen]
    generator = torch.Generator().manual_seed(seed)
    load = ImageLoader(images, next(backbone.parameters()).device, resident=False)
    means = np.zeros((LOOKS, len(chosen), backbone.dimensions))
    for look in range(LOOKS):
        changes = looks.draw(len(chosen), generator)
        for number in range(IMAGES):
            shown = image_ids[first + number % sizes]
            means[look] += extract_features(backbone, images, shown, _in_order(changes, load(shown))) / IMAGES
    deviations = (means - means.mean(axis=0)).reshape(-1, backbone.dimensions)
    covariance = deviations.T @ deviations / ((LOOKS - 1) * len(chosen))
    return covariance if np.trace(covariance) > 0 else None


def _in_order(changes: Changes, images: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function that puts all these images, one batch after the other, through their changes."""
    done = 0

    def change(batch: Tensor) -> Tensor:
        nonlocal done
        done += len(batch)
        return changes[slice(done - len(batch), done)](batch, images)

    return change
