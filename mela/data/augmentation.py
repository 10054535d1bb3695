"""Augment a batch of images by random changes, drawn for each image on its own.

Batched counterparts of torchvision's RandomCrop (zero padding), ColorJitter (brightness, contrast and saturation, in a
random order), RandomHorizontalFlip and RandomAffine, and beside them tints, blur and surroundings. Drawing is apart
from applying, so that a part of a batch changes just as it would among the others.

torchvision changes all images of a batch alike, and Kornia draws from PyTorch's global generator, not from one that a
training owns and restores.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from mela.data.images import to_unit
from mela.data.surroundings import Surroundings

GREY = (0.2989, 0.587, 0.114)
# The changes of colour are all clamp(factor x + (1 - factor) (a grey(x) + b mean(grey(x)))), with these (a, b)
MIXED_WITH = ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0))  # brightness, contrast, saturation


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What is to be done with each of n images; None leaves them as they are.

    Attributes
    ----------
    padding : int
        Pixels of zeros around an image before it is cut to its old size.
    corners : int64 (2, n), optional
        First row and column of what is cut out of the padded image.
    factors : float32 (3, n), optional
        Factors of brightness, contrast and saturation.
    order : int64 (n, 3), optional
        Order in which these three follow each other.
    flipped : bool (n,), optional
        Whether an image is mirrored left to right.
    maps : float32 (n, 2, 2), optional
        Maps from the place of a pixel, seen from the center, to where it comes from.
    tints : float32 (3, n), optional
        Factor of each channel.
    blurs : float32 (n,), optional
        Share of a blurred copy, from 0 to 1.
    surroundings : Surroundings, optional
        What stays of each image, and which other one surrounds it.
    """

    padding: int
    corners: Tensor | None
    factors: Tensor | None
    order: Tensor | None
    flipped: Tensor | None
    maps: Tensor | None = None
    tints: Tensor | None = None
    blurs: Tensor | None = None
    surroundings: Surroundings | None = None

    def __getitem__(self, rows: slice) -> "Changes":
        """Return the changes of some of the images."""

        def some(values: Tensor | None, dimension: int = 0) -> Tensor | None:
            return None if values is None else values[rows] if dimension == 0 else values[:, rows]

        return Changes(
            padding=self.padding,
            corners=some(self.corners, 1),
            factors=some(self.factors, 1),
            order=some(self.order),
            flipped=some(self.flipped),
            maps=some(self.maps),
            tints=some(self.tints, 1),
            blurs=some(self.blurs),
            surroundings=None if self.surroundings is None else self.surroundings[rows],
        )

    def __call__(self, images: Tensor, all_images: Tensor | None = None) -> Tensor:
        """Turn images (n, c, h, w), uint8 or float in [0, 1], into float in [0, 1] of the same shape.

        Parameters
        ----------
        images : Tensor
        all_images : Tensor, optional
            All that were drawn for, which surround a part. Without it, `images` are all.
        """
        if self.surroundings is not None and len(images):
            donors = (images if all_images is None else all_images)[self.surroundings.donors]
            images = self.surroundings(to_unit(images), to_unit(donors))
        if self.corners is not None or self.flipped is not None:
            images = move(images, self.padding, self.corners, self.flipped)
        images = to_unit(images)
        if not len(images):
            return images
        if self.maps is not None:
            images = turn(images, self.maps)
        if self.factors is not None and self.order is not None:
            images = recolour(images, self.factors, self.order)
        if self.tints is not None and images.shape[1] == 3:
            images = (images * self.tints.T.to(images.device)[:, :, None, None]).clamp_(0, 1)
        if self.blurs is not None:
            images = torch.lerp(images, blurred(images), self.blurs.to(images.device).view(-1, 1, 1, 1))
        return images


@dataclass(frozen=True, kw_only=True)
class Augmentation:
    """Say what may change, each image by as much as is drawn for it.

    Attributes
    ----------
    crop_padding : int
        Pixels of shift in every direction.
    flip : bool
        Whether half of the images are mirrored left to right.
    jitter : float
        Share by which brightness, contrast and saturation may change.
    rotation : float, default=0
        Degrees by which an image may turn to either side.
    zoom : float, default=0
        Share by which an image may grow or shrink; its sides differ by up to half as much.
    tint : float, default=0
        Share by which each channel may change on its own.
    blur : float, default=0
        Probability that an image is blurred, by a share that is drawn.
    surroundings : float, default=0
        Probability that what surrounds the middle of an image comes from another one (`mela.data.surroundings`).
    """

    crop_padding: int
    flip: bool
    jitter: float
    rotation: float = 0.0
    zoom: float = 0.0
    tint: float = 0.0
    blur: float = 0.0
    surroundings: float = 0.0

    @property
    def of_one_image(self) -> "Augmentation":
        """The same without surroundings, so that images change alike whatever else is in their batch."""
        return replace(self, surroundings=0.0)

    def draw(self, count: int, generator: torch.Generator) -> Changes:
        """Draw the changes of `count` images; the generator lives on the CPU."""
        padding = self.crop_padding
        corners = torch.randint(0, 2 * padding + 1, (2, count), generator=generator) if padding else None
        factors = order = maps = tints = blurs = None
        if self.jitter:
            factors = torch.rand(3, count, generator=generator) * (2 * self.jitter) + (1 - self.jitter)
            order = torch.rand(count, 3, generator=generator).argsort(1)
        flipped = torch.rand(count, generator=generator) < 0.5 if self.flip else None
        # drawn after the others, which stay as they are without these
        if self.rotation or self.zoom:
            maps = self._maps(2 * torch.rand(3, count, generator=generator) - 1)
        if self.tint:
            tints = 1 + self.tint * (2 * torch.rand(3, count, generator=generator) - 1)
        if self.blur:
            share, chosen = torch.rand(2, count, generator=generator)
            blurs = torch.where(chosen < self.blur, share, 0.0)
        around = Surroundings.draw(self.surroundings, count, generator) if self.surroundings else None
        return Changes(
            padding=padding,
            corners=corners,
            factors=factors,
            order=order,
            flipped=flipped,
            maps=maps,
            tints=tints,
            blurs=blurs,
            surroundings=around,
        )

    def _maps(self, drawn: Tensor) -> Tensor:
        """Return maps (n, 2, 2) from numbers (3, n) in [-1, 1]: of the angle, of the size and of the ratio of sides."""
        angles, grown = drawn[0] * math.radians(self.rotation), math.log1p(self.zoom)
        wide, high = (torch.exp(-grown * (drawn[1] + side * drawn[2] / 4)) for side in (1, -1))
        cosine, sine = torch.cos(angles), torch.sin(angles)
        return torch.stack([cosine * wide, -sine * wide, sine * high, cosine * high], dim=1).view(-1, 2, 2)

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        """Turn images (n, c, h, w), uint8 or float in [0, 1], into float in [0, 1] of the same shape."""
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


def turn(images: Tensor, maps: Tensor) -> Tensor:
    """Turn and stretch square images (n, c, h, w), float, by maps (n, 2, 2); outside they go on as at their edges."""
    places = F.pad(maps, [0, 1]).to(images)
    grid = F.affine_grid(places, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def blurred(images: Tensor) -> Tensor:
    """Return images (n, c, h, w) in which every pixel is the mean of its surroundings, twice over 3 x 3 pixels."""
    for _ in range(2):
        images = F.avg_pool2d(F.pad(images, [1, 1, 1, 1], mode="replicate"), 3, 1)
    return images


def grey(images: Tensor) -> Tensor:
    """Convert images (n, c, h, w) to their luminance (n, 1, h, w)."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.split(1, dim=1)
    return red * GREY[0] + green * GREY[1] + blue * GREY[2]
