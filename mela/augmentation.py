"""Random changes of a batch of images, drawn for each image on its own.

Batched counterparts of torchvision's RandomCrop (zero padding), ColorJitter (brightness, contrast and saturation, in a
random order) and RandomHorizontalFlip.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

GREY = (0.2989, 0.587, 0.114)


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """What may change: ``crop_padding`` pixels of shift, ``flip`` left to right, ``jitter`` of colour (share)."""

    crop_padding: int
    flip: bool
    jitter: float

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Images (n, c, h, w), float in [0, 1], to images of the same shape; the generator lives on the CPU."""
        if self.crop_padding:
            images = random_crop(images, self.crop_padding, generator)
        if self.jitter:
            images = color_jitter(images, self.jitter, generator)
        if self.flip:
            flipped = _uniform(len(images), 0, 1, generator, images) < 0.5
            images = torch.where(flipped, images.flip(3), images)
        return images


def random_crop(images: Tensor, padding: int, generator: torch.Generator) -> Tensor:
    """Pad each image with zeros on all sides and cut a window of the old size at a random place."""
    count, _, height, width = images.shape
    padded = F.pad(images, [padding] * 4).permute(0, 2, 3, 1)
    shifts = torch.randint(0, 2 * padding + 1, (2, count, 1), generator=generator).to(images.device)
    rows = shifts[0] + torch.arange(height, device=images.device)
    columns = shifts[1] + torch.arange(width, device=images.device)
    image = torch.arange(count, device=images.device)
    return padded[image[:, None, None], rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def color_jitter(images: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Change brightness, contrast and saturation by factors in [1 - strength, 1 + strength], in random order.

    Saturation leaves images of one channel as they are.
    """
    factors = [_uniform(len(images), 1 - strength, 1 + strength, generator, images) for _ in range(3)]
    order = torch.rand(len(images), 3, generator=generator).argsort(1).to(images.device)
    changes = (_brightness, _contrast, _saturation)
    images = images.clone()
    for position in range(3):
        for change, function in enumerate(changes):
            chosen = torch.nonzero(order[:, position] == change).squeeze(1)
            if len(chosen):
                images[chosen] = function(images[chosen], factors[change][chosen])
    return images


def _brightness(images: Tensor, factor: Tensor) -> Tensor:
    return (images * factor).clamp(0, 1)


def _contrast(images: Tensor, factor: Tensor) -> Tensor:
    mean = _grey(images).mean((1, 2, 3), keepdim=True)
    return (images * factor + mean * (1 - factor)).clamp(0, 1)


def _saturation(images: Tensor, factor: Tensor) -> Tensor:
    return images if images.shape[1] == 1 else (images * factor + _grey(images) * (1 - factor)).clamp(0, 1)


def _grey(images: Tensor) -> Tensor:
    if images.shape[1] == 1:
        return images
    weights = torch.tensor(GREY, device=images.device, dtype=images.dtype).view(1, 3, 1, 1)
    return (images * weights).sum(1, keepdim=True)


def _uniform(count: int, low: float, high: float, generator: torch.Generator, like: Tensor) -> Tensor:
    drawn = torch.rand(count, 1, 1, 1, generator=generator) * (high - low) + low
    return drawn.to(like.device)
