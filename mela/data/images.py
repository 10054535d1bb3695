"""Load packed uint8 images as batches of tensors."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.errors import MelaError

COPY_BYTES = 2**26


def require_images(images: npt.NDArray[np.uint8], image_ids: npt.NDArray[np.int64]) -> None:
    """Raise MelaError unless all of `image_ids` (n,) are rows of `images` (N, h, w, c)."""
    if len(image_ids) and not 0 <= image_ids.min() <= image_ids.max() < len(images):
        strange = image_ids.max() if image_ids.min() >= 0 else image_ids.min()
        raise MelaError(
            f"packed images: a task or label names image {strange}, but there are only {len(images)} images; rerun the "
            "stages images and manifest"
        )


def to_unit(images: Tensor) -> Tensor:
    """Convert images of uint8 to float32 in [0, 1]; return others unchanged."""
    return images.to(torch.float32) / 255 if images.dtype == torch.uint8 else images


class ImageLoader:
    """Load batches of packed images onto a device, as uint8 and with channels last in memory.

    Parameters
    ----------
    images : uint8 (N, h, w, c), possibly memory-mapped
        On a CPU they are read in place, through the page cache if they are memory-mapped.
    device : torch.device
    resident : bool, optional
        Whether to copy all images to the device at once, instead of batch by batch. By default this is so if the
        device is a GPU and they take less than half of its free memory.
    """

    def __init__(self, images: npt.NDArray[np.uint8], device: torch.device, *, resident: bool | None = None) -> None:
        self.device = device
        self._images = images
        if resident is None:
            resident = device.type == "cuda" and images.nbytes < torch.cuda.mem_get_info(device)[0] / 2
        self._resident = self._copy() if resident else None

    def _copy(self) -> Tensor:
        kind = torch.from_numpy(np.empty(0, self._images.dtype)).dtype
        whole = torch.empty(self._images.shape, dtype=kind, device=self.device)
        step = max(1, COPY_BYTES // max(1, self._images[:1].nbytes))
        for start in range(0, len(whole), step):
            whole[start : start + step] = torch.from_numpy(np.array(self._images[start : start + step]))
        return whole

    def __call__(self, image_ids: npt.NDArray[np.int64]) -> Tensor:
        """Return the images (n, c, h, w) of uint8 with the given ids (n,)."""
        if self._resident is not None:
            return self._resident[torch.from_numpy(image_ids).to(self.device)].permute(0, 3, 1, 2)
        batch = torch.from_numpy(np.ascontiguousarray(self._images[image_ids]))
        if self.device.type == "cuda":
            batch = batch.pin_memory()
        return batch.to(self.device, non_blocking=True).permute(0, 3, 1, 2)


def channel_statistics(
    images: npt.NDArray[np.uint8], image_ids: npt.NDArray[np.int64], *, batch_size: int = 256
) -> tuple[list[float], list[float]]:
    """Return each channel's mean and standard deviation for images in [0, 1]; a constant channel gets deviation 1."""
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
