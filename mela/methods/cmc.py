"""CMC: each image told from others by what two different views of it have in common (Tian et al., 2020)."""

from copy import deepcopy
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.data.augmentation import Augmentation
from mela.learners.base import ImageLearner, contrast
from mela.learners.method import Method
from mela.learners.views import random_parts
from mela.models.backbones import Backbone
from mela.runtime.compute import Run

DIMENSIONS = 128
TEMPERATURE = 0.07
BLUR = 5


class SplitBackbone(Backbone):
    """Concatenate the features of two networks, each of which sees one half of what an image tells.

    Colour images are split into what all channels have in common and how each differs from it, grey ones into a blurred
    image and what it lacks. Both networks start alike.
    """

    def __init__(self, backbone: Backbone) -> None:
        bodies = nn.ModuleList([backbone.body, deepcopy(backbone.body)])
        mean, std = backbone.mean.flatten().tolist(), backbone.std.flatten().tolist()
        super().__init__(bodies, 2 * backbone.dimensions, mean, std)

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (n, 2m) of images (n, c, h, w), float in [0, 1]."""
        return torch.cat(self.halves(images, images), dim=1)

    def halves(self, first: Tensor, second: Tensor) -> list[Tensor]:
        """Return the features (n, m) of the first view of some images, and of the second view of others."""
        grey = first.shape[1] == 1
        views = split(self.normalized(first), grey=grey)[0], split(self.normalized(second), grey=grey)[1]
        return [body(view) for body, view in zip(self.body.children(), views, strict=True)]


def split(images: Tensor, *, grey: bool) -> tuple[Tensor, Tensor]:
    """Split images (n, c, h, w) into two views of that shape that add up to them; grey ones may have three channels."""
    if grey:
        common = F.avg_pool2d(images, BLUR, 1, BLUR // 2, count_include_pad=False)
    else:
        common = images.mean(1, keepdim=True).expand_as(images)
    return common, images - common


class CMC(ImageLearner):
    """Bring the two networks' views of an image nearer to each other than to views of other images.

    The views come from two random parts of the image, so that their edges do not match. They are compared within a
    batch, while the authors remember codes of all images in much longer trainings.
    """

    def __init__(self, backbone: Backbone, n_images: int) -> None:
        super().__init__(SplitBackbone(backbone), n_images)
        self.projections = nn.ModuleList([nn.Linear(backbone.dimensions, DIMENSIONS) for _ in range(2)])

    def forward(self, images: Tensor) -> Tensor:
        """Return the projections of a view of each image (b, 2, 128) of pairs (2b, c, h, w), all first images first."""
        halves = cast("SplitBackbone", self.backbone).halves(*images.chunk(2))
        return torch.stack([project(half) for project, half in zip(self.projections, halves, strict=True)], dim=1)

    def loss(
        self, run: Run, images: Tensor, augmentation: Augmentation, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return the summed loss of both directions, and which images both told apart; see `ImageLearner.loss`."""
        pairs = [random_parts(images, augmentation, generator) for _ in range(2)]
        one, other = F.normalize(run(torch.cat(pairs)), dim=2).unbind(1)
        similarities, own = one @ other.T / TEMPERATURE, torch.arange(len(images), device=images.device)
        forth, back = contrast(similarities, own), contrast(similarities.T, own)
        return forth[0] + back[0], forth[1] & back[1]


METHOD = Method(title="CMC", source="Tian et al., 2020", sees="images", learner=CMC)
