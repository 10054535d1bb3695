"""Mix images somewhere on their way through the network: manifold mixup (Verma et al., 2019)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from mela.learners.base import LabelLearner
from mela.models.backbones import Backbone, ResidualBlock
from mela.runtime.compute import Run

CONCENTRATION = 2.0


@dataclass(frozen=True)
class Mix:
    r"""Mix image i to :math:`\lambda x_i + (1 - \lambda) x_{p(i)}` before the layer `layer` of the backbone.

    Attributes
    ----------
    layer : int
        0 mixes the images themselves.
    share : float
        lambda.
    partners : int64 (b,)
    """

    layer: int
    share: float
    partners: Tensor

    @classmethod
    def draw(cls, backbone: Backbone, count: int, generator: torch.Generator) -> "Mix":
        """Draw one of the layers between blocks, lambda from Beta(2, 2), and a partner for each image."""
        layers = mixing_layers(backbone)
        layer = layers[int(torch.randint(len(layers), (), generator=generator))]
        # the ratio of Gamma(2) variables, each a sum of two exponential ones
        one, other = -torch.rand(2, int(CONCENTRATION), generator=generator).clamp(min=1e-12).log().sum(1)
        return cls(layer, float(one / (one + other)), torch.randperm(count, generator=generator))


def mixing_layers(backbone: Backbone) -> list[int]:
    """List where images may be mixed: at the beginning, and after every block but the last, if there are any."""
    if not isinstance(backbone.body, nn.Sequential):
        return [0]
    ends = [place for place, layer in enumerate(backbone.body, 1) if isinstance(layer, nn.ReLU | ResidualBlock)]
    return [0, *ends[:-1]]


def mixed_features(backbone: Backbone, images: Tensor, mix: Mix) -> Tensor:
    """Return the features (b, m) of images (b, c, h, w) that are mixed on their way."""
    partners = mix.partners.to(images.device)
    maps = backbone.normalized(images)
    layers = list(backbone.body) if isinstance(backbone.body, nn.Sequential) else [backbone.body]
    for place, layer in enumerate(layers):
        if place == mix.layer:
            maps = mix.share * maps + (1 - mix.share) * maps[partners]
        maps = layer(maps)
    return maps


def mixed_loss(
    run: Run, learner: LabelLearner, images: Tensor, targets: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return the summed cross-entropy of mixed images to the labels of both, weighted as mixed, and their logits.

    Parameters
    ----------
    run, images, targets, generator
        See `LabelLearner.loss`; `run` takes a keyword `mix`, and gives logits of labels.
    learner : LabelLearner
    """
    mix = Mix.draw(learner.backbone, len(images), generator)
    logits, partners = run(images, mix=mix), targets[mix.partners.to(targets.device)]
    own, others = (learner.cross_entropy(logits, labels) for labels in (targets, partners))
    return mix.share * own + (1 - mix.share) * others, logits
