"""Draw random views of images, by which methods without labels learn what does not matter."""

import math
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F

from mela.data.augmentation import Augmentation, grey

AREA = (0.2, 1.0)
ASPECT = (3 / 4, 4 / 3)
GREY = 0.2
COLOUR = Augmentation(crop_padding=0, flip=False, jitter=0.4)


def random_view(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Return another view of each image (b, c, h, w), float in [0, 1]: a random part of it in random colours.

    The augmentation's jitter and surroundings are left out.
    """
    return random_colours(random_parts(images, augmentation, generator), generator)


def random_parts(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Resize a random rectangle of each image to the whole: 20% to 100% of the area, sides 3:4 to 4:3.

    Parameters
    ----------
    images : Tensor (b, c, h, w)
        float in [0, 1].
    augmentation : Augmentation
        Applied before, without jitter and surroundings.
    generator : Generator
        On the CPU.
    """
    images = replace(augmentation.of_one_image, jitter=0.0)(images, generator)
    shares = torch.empty(len(images)).uniform_(*AREA, generator=generator)
    aspects = torch.empty(len(images)).uniform_(math.log(ASPECT[0]), math.log(ASPECT[1]), generator=generator).exp()
    sides = torch.stack([shares * aspects, shares / aspects]).sqrt().clamp(max=1)
    # the middle of the rectangle, where the image reaches from -1 to 1
    middles = (2 * torch.rand(2, len(images), generator=generator) - 1) * (1 - sides)
    maps = torch.zeros(len(images), 2, 3)
    maps[:, 0, 0], maps[:, 1, 1] = sides
    maps[:, 0, 2], maps[:, 1, 2] = middles
    grid = F.affine_grid(maps.to(images), list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="border", align_corners=False)


def random_colours(images: Tensor, generator: torch.Generator) -> Tensor:
    """Change brightness, contrast and saturation by up to 0.4, and turn a fifth of the images grey."""
    images = COLOUR(images, generator)
    without = torch.rand(len(images), generator=generator) < GREY
    return torch.where(without.to(images.device)[:, None, None, None], grey(images), images)
