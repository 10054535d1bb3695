"""Features of many images, in evaluation mode."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.backbones import Backbone
from mela.errors import MelaError
from mela.images import iterate_batches, require_images


def feature_batches(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    image_ids: npt.NDArray[np.int64],
    change: Callable[[Tensor], Tensor] = lambda batch: batch,
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """Ids (b,) and features (b, m) of the images with the given ids (n,), a batch at a time.

    Parameters
    ----------
    backbone : Backbone
        Put into evaluation mode.
    images : uint8 (N, h, w, c), possibly memory-mapped
    image_ids : int64 (n,)
    change : callable, optional
        What each batch (b, c, h, w) is put through first.

    Raises
    ------
    MelaError
        A feature is NaN or infinite; names the image.
    """
    require_images(images, image_ids)
    device = next(backbone.parameters()).device
    backbone.eval()
    done = 0
    for batch in iterate_batches(images, image_ids, device):
        # the mode is the thread's: around the yield it would be the caller's too
        with torch.inference_mode():
            features = backbone(change(batch)).cpu().numpy()
        own = image_ids[done : done + len(features)]
        finite = np.isfinite(features).all(axis=1)
        if not finite.all():
            raise MelaError(
                f"features: image {own[finite.argmin()]}: expected finite values, got NaN or infinity; train again"
            )
        yield own, features
        done += len(features)


def extract_features(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    image_ids: npt.NDArray[np.int64],
    change: Callable[[Tensor], Tensor] = lambda batch: batch,
) -> npt.NDArray[np.float32]:
    """Features (n, m) of `feature_batches` in one array."""
    features = np.empty((len(image_ids), backbone.dimensions), dtype=np.float32)
    done = 0
    for _, found in feature_batches(backbone, images, image_ids, change):
        features[done : done + len(found)] = found
        done += len(found)
    return features
