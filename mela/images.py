"""Packed uint8 images as batches of float tensors."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.errors import MelaError


def require_images(images: npt.NDArray[np.uint8], image_ids: npt.NDArray[np.int64]) -> None:
    """Raise MelaError unless all of `image_ids` (n,) are rows of `images` (N, h, w, c)."""
    if len(image_ids) and not 0 <= image_ids.min() <= image_ids.max() < len(images):
        strange = image_ids.max() if image_ids.min() >= 0 else image_ids.min()
        raise MelaError(
            f"packed images: expected an image {strange}, which a task or label names, got {len(images)} images; "
            "rerun the stages images and manifest"
        )


def load_batch(images: npt.NDArray[np.uint8], image_ids: npt.NDArray[np.int64], device: torch.device) -> Tensor:
    """Images (n, c, h, w), float in [0, 1], channels last in memory.

    Parameters
    ----------
    images : uint8 (N, h, w, c), possibly memory-mapped
    image_ids : int64 (n,)
        Rows of `images`.
    device : torch.device
        Where the batch goes; it travels as uint8.
    """
    batch = torch.from_numpy(np.ascontiguousarray(images[image_ids])).to(device)
    return batch.permute(0, 3, 1, 2).to(torch.float32) / 255


def iterate_batches(
    images: npt.NDArray[np.uint8], image_ids: npt.NDArray[np.int64], device: torch.device
) -> Iterator[Tensor]:
    """Batches of `load_batch` over all of `image_ids`, in order."""
    # on a CPU, feature maps above 32 MiB are mapped and unmapped anew for each layer, which takes longer than the layer
    batch_size = 64 if device.type == "cpu" else 512
    for start in range(0, len(image_ids), batch_size):
        yield load_batch(images, image_ids[start : start + batch_size], device)


def channel_statistics(
    images: npt.NDArray[np.uint8], image_ids: npt.NDArray[np.int64], *, batch_size: int = 256
) -> tuple[list[float], list[float]]:
    """Mean and standard deviation of each channel, images scaled to [0, 1]; a constant channel gets deviation 1."""
    counts = np.zeros((images.shape[3], 256), dtype=np.int64)
    for start in range(0, len(image_ids), batch_size):
        batch = images[image_ids[start : start + batch_size]]
        for channel, own in enumerate(counts):
            own += np.bincount(batch[..., channel].reshape(-1), minlength=256)
    pixels = len(image_ids) * images.shape[1] * images.shape[2]
    values = np.arange(256)
    mean = counts @ values / pixels
    deviation = np.sqrt(np.maximum(counts @ values**2 / pixels - mean**2, 0))
    return (mean / 255).tolist(), np.where(deviation > 0, deviation / 255, 1.0).tolist()
