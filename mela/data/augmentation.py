"""Augment a batch of images by random changes, drawn for each image on its own.

Batched counterparts of torchvision's RandomCrop (zero padding), ColorJitter (brightness, contrast and saturation, in a
random order) and RandomHorizontalFlip. Drawing is apart from applying, so that a part of a batch
changes just as it would among the others.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from mela.data.images import to_unit

GREY = (0.2989, 0.587, 0.114)
# The changes of colour are all clamp(factor x + (1 - factor) (a grey(x) + b mean(grey(x)))), with these (a, b)
MIXED_WITH = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0))  # brightness, contrast, saturation


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Hold the changes of each of n images; None leaves them as they are.

    Attributes
    ----------
    padding : int
        Pixels of zeros around an image before it is cut to its old size.
    corners : int64 (2, n), optional
        First row and column of what is cut out of the padded image.
    factors : float32 (3, n), optional
        Factors of brightness, contrast and saturation.
    order : int64 (n, 3), optional
        Order of these three.
    flipped : bool (n,), optional
        Left to right.
    """

    padding: int
    corners: Tensor | None
    factors: Tensor | None
    order: Tensor | None
    flipped: Tensor | None

    def __getitem__(self, rows: slice) -> "Changes":
        """Return the changes of some of the images."""
        return Changes(
            padding=self.padding,
            corners=None if self.corners is None else self.corners[:, rows],
            factors=None if self.factors is None else self.factors[:, rows],
            order=None if self.order is None else self.order[rows],
            flipped=None if self.flipped is None else self.flipped[rows],
        )

    def __call__(self, images: Tensor) -> Tensor:
        """Change images (n, c, h, w), uint8 or float in [0, 1], to float in [0, 1] of the same shape."""
        if self.corners is not None or self.flipped is not None:
            images = move(images, self.padding, self.corners, self.flipped)
        images = to_unit(images)
        if self.factors is not None and self.order is not None:
            images = recolour(images, self.factors, self.order)
        return images


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Augment images: ``crop_padding`` pixels of shift, ``flip`` left to right, ``jitter`` of colour (share)."""

    crop_padding: int
    flip: bool
    jitter: float

    def draw(self, count: int, generator: torch.Generator) -> Changes:
        """Draw changes of `count` images; the generator lives on the CPU."""
        padding = self.crop_padding
        corners = torch.randint(0, 2 * padding + 1, (2, count), generator=generator) if padding else None
        factors = order = None
        if self.jitter:
            factors = torch.rand(3, count, generator=generator) * (2 * self.jitter) + (1 - self.jitter)
            order = torch.rand(count, 3, generator=generator).argsort(1)
        flipped = torch.rand(count, generator=generator) < 0.5 if self.flip else None
        return Changes(padding=padding, corners=corners, factors=factors, order=order, flipped=flipped)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Augment images (n, c, h, w), uint8 or float in [0, 1], to float in [0, 1] of the same shape."""
        return self.draw(len(images), generator)(images)


NONE = Augmentation(crop_padding=0, flip=False, jitter=0.0)


def move(images: Tensor, padding: int, corners: Tensor | None, flipped: Tensor | None) -> Tensor:
    """Cut windows of the old size out of padded images (n, c, h, w) of any type, and mirror some of them.

    The pixels of a channels-last batch are the rows of a matrix, which are picked in one go.
    """
    count, channels, height, width = images.shape
    device = images.device
    rows = torch.arange(height, device=device).expand(count, -1)
    columns = torch.arange(width, device=device).expand(count, -1)
    if flipped is not None:
        columns = torch.where(flipped.to(device)[:, None], width - 1 - columns, columns)
    if corners is not None:
        rows, columns = rows + corners[0].to(device)[:, None], columns + corners[1].to(device)[:, None]
        images = F.pad(images, [padding] * 4)
        height, width = images.shape[2:]
    first = torch.arange(count, device=device)[:, None, None] * (height * width)
    pixels = (first + rows[:, :, None] * width + columns[:, None, :]).flatten()
    picked = images.permute(0, 2, 3, 1).reshape(-1, channels).index_select(0, pixels)
    return picked.view(count, rows.shape[1], columns.shape[1], channels).permute(0, 3, 1, 2)


def recolour(images: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Change brightness, contrast and saturation of images (n, c, h, w) by factors (3, n), in the order (n, 3).

    Images of one channel have no saturation and keep it.
    """
    of_image = factors.T.gather(1, order)
    mixed = torch.tensor(MIXED_WITH)[order]
    if images.shape[1] == 1:
        of_image = torch.where(order == 2, 1.0, of_image)
    table = torch.cat([of_image[..., None], (1 - of_image)[..., None] * mixed], dim=2).to(images.device)
    for position in range(3):
        factor, own, average = (column.view(-1, 1, 1, 1) for column in table[:, position].unbind(1))
        luminance = grey(images)
        mixed_in = luminance * own + luminance.mean((1, 2, 3), keepdim=True) * average
        images = torch.addcmul(mixed_in, images, factor).clamp_(0, 1)
    return images


def grey(images: Tensor) -> Tensor:
    """Convert images (n, c, h, w) to their luminance (n, 1, h, w)."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.split(1, dim=1)
    return red * GREY[0] + green * GREY[1] + blue * GREY[2]
