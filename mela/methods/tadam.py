"""TADAM: an embedding that is set for each task (Oreshkin, Rodriguez and Lacoste, 2018)."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from mela.learners.base import Learner, prototypes
from mela.learners.method import Method
from mela.models.backbones import Backbone, ResidualBlock


class TADAM(Learner):
    r"""Logits are :math:`-s \|\psi(x, \Gamma) - c_k\|^2`, with s learned and :math:`\Gamma` made of the task.

    The mean of the class means without a task, through one small network for each block, gives a scale and a shift of
    each channel of the block (FiLM). The paper also trains on global labels, which are unknown here.
    """

    initial_scale = 0.03

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        channels = {place: _channels(layer) for place, layer in enumerate(_layers(backbone)) if _channels(layer)}
        self.places = list(channels)
        self.conditions = nn.ModuleList([Condition(backbone.dimensions, count) for count in channels.values()])

    def forward(self, images: Tensor) -> Tensor:
        """Return the images unchanged; the features depend on the task."""
        return images

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Return the logits (t, q, ways) of images (t, q, c, h, w); see `Learner.logits`."""
        return torch.stack([self._logits(*task, ways) for task in zip(support, labels, query, strict=True)])

    def _logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        with _without_memory(self.backbone):
            plain = self.backbone(support)
        task = prototypes(plain[None], labels[None], ways)[0].mean(0)
        images = torch.cat([support, query]).contiguous(memory_format=torch.channels_last)
        features = self._conditioned(images, task)
        means = prototypes(features[None, : len(support)], labels[None], ways)[0]
        return -self.scale * torch.cdist(features[len(support) :], means).square()

    def _conditioned(self, images: Tensor, task: Tensor) -> Tensor:
        """Return the features (b, m) of images (b, c, h, w) for a task (m,)."""
        maps = self.backbone.normalized(images)
        for place, layer in enumerate(_layers(self.backbone)):
            maps = layer(maps)
            if place in self.places:
                scale, shift = self.conditions[self.places.index(place)](task)
                maps = maps * (1 + scale[:, None, None]) + shift[:, None, None]
        return maps


class Condition(nn.Module):
    """Scale and shift some channels for a task: not at all at the start, then as strongly as is learned."""

    def __init__(self, dimensions: int, channels: int) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(dimensions, channels), nn.ReLU(), nn.Linear(channels, 2 * channels))
        self.strength = nn.Parameter(torch.zeros(2, 1))

    def forward(self, task: Tensor) -> Tensor:
        """Return the scales and shifts (2, channels) for a task (m,)."""
        made: Tensor = self.strength * self.network(task).view(2, -1)
        return made


def _layers(backbone: Backbone) -> list[nn.Module]:
    return list(backbone.body.children())


def _channels(layer: nn.Module) -> int:
    """Count the channels of a layer's maps, 0 if they are not conditioned; those of BatchNorm and blocks are."""
    if isinstance(layer, nn.BatchNorm2d):
        return layer.num_features
    if isinstance(layer, ResidualBlock):
        return next(module.num_features for module in layer.shortcut if isinstance(module, nn.BatchNorm2d))
    return 0


@contextmanager
def _without_memory(network: nn.Module) -> Iterator[None]:
    """Keep the running statistics of BatchNorm within the block; they are those of conditioned maps."""
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    before = [module.momentum for module in norms]
    for module in norms:
        module.momentum = 0.0
    try:
        yield
    finally:
        for module, momentum in zip(norms, before, strict=True):
            module.momentum = momentum


METHOD = Method(title="TADAM", source="Oreshkin et al., 2018", sees="tasks", learner=TADAM)
