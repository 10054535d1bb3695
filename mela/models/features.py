"""Extract features of many images, in evaluation mode."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mela.data.images import ImageLoader, require_images, to_unit
from mela.errors import DivergedError
from mela.models.backbones import Backbone
from mela.runtime.progress import SILENT, Watch
from mela.runtime.team import ALONE, Team


def feature_batches(
    backbone: nn.Module,
    images: npt.NDArray[np.uint8],
    image_ids: npt.NDArray[np.int64],
    change: Callable[[Tensor], Tensor] = to_unit,
    *,
    team: Team = ALONE,
    watch: Watch = SILENT,
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """Yield ids (b,) and features (b, m) of the images with the given ids (n,), a batch at a time.

    Parameters
    ----------
    backbone : nn.Module
        A `Backbone`, or a learner that makes something else (b, ...) of images; put into evaluation mode.
    images : uint8 (N, h, w, c), possibly memory-mapped
    image_ids : int64 (n,)
    change : callable, optional
        What each batch, uint8 (b, c, h, w), is put through first, to float in [0, 1].
    team : Team
        Processes among which each batch is divided; the first gets all features. The others get none, but have to
        iterate as well.
    watch : Watch
        Counts images.

    Raises
    ------
    DivergedError
        A feature is NaN or infinite; names the image.
    """
    require_images(images, image_ids)
    device = next(backbone.parameters()).device
    backbone.eval()
    load = ImageLoader(images, device, resident=False)
    # on a CPU, feature maps above 32 MiB are mapped and unmapped anew for each layer, which takes longer than the layer
    batch_size = team.size * (64 if device.type == "cpu" else 512)
    watch.begin(len(image_ids))
    for start in range(0, len(image_ids), batch_size):
        ids = image_ids[start : start + batch_size]
        # the mode is the thread's: around the yield it would be the caller's too
        with torch.inference_mode():
            gathered = team.gather(backbone(change(load(ids[team.share(len(ids))]))), len(ids))
        if gathered is None:
            continue
        features = gathered.cpu().numpy()
        finite = np.isfinite(features).reshape(len(ids), -1).all(axis=1)
        if not finite.all():
            raise DivergedError(
                f"features: image {ids[finite.argmin()]}: expected finite values, got NaN or infinity; train again"
            )
        watch.advance(len(ids))
        yield ids, features


def extract_features(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    image_ids: npt.NDArray[np.int64],
    change: Callable[[Tensor], Tensor] = to_unit,
    *,
    watch: Watch = SILENT,
) -> npt.NDArray[np.float32]:
    """Return the features (n, m) of `feature_batches` in one array."""
    features = np.empty((len(image_ids), backbone.dimensions), dtype=np.float32)
    done = 0
    for _, found in feature_batches(backbone, images, image_ids, change, watch=watch):
        features[done : done + len(found)] = found
        done += len(found)
    return features
