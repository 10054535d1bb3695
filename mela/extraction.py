"""Features of many images, in evaluation mode."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.backbones import Backbone
from mela.errors import MelaError
from mela.images import iterate_batches, require_images, to_unit


def extract_features(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    image_ids: npt.NDArray[np.int64],
    change: Callable[[Tensor], Tensor] = to_unit,
) -> npt.NDArray[np.float32]:
    """Features (n, m) of the images with the given ids (n,), each batch put through `change` first.

    `change` takes uint8 (b, c, h, w) and gives float in [0, 1].

    Raises
    ------
    MelaError
        A feature is NaN or infinite; names the image.
    """
    require_images(images, image_ids)
    device = next(backbone.parameters()).device
    backbone.eval()
    features = np.empty((len(image_ids), backbone.dimensions), dtype=np.float32)
    done = 0
    with torch.inference_mode():
        for batch in iterate_batches(images, image_ids, device):
            features[done : done + len(batch)] = backbone(change(batch)).cpu().numpy()
            done += len(batch)
    bad = np.flatnonzero(~np.isfinite(features).all(axis=1))
    if len(bad):
        raise MelaError(
            f"features: image {image_ids[bad[0]]}: expected finite values, got NaN or infinity; train again"
        )
    return features
