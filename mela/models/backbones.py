"""Define the embeddings psi, which map images to vectors."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.models.timm_backbones import PREFIX, pretrained_body
from mela.runtime.seeding import seeded

DROP_BLOCK_STEPS = 40_000


class DropBlock(nn.Module):
    """Drop square regions (Ghiasi et al., 2018), with a drop rate that grows from 0.

    Each position starts a dropped block with probability gamma, such that the expected share of dropped activations is
    about the current rate; what remains is scaled to keep the sum. The rate grows linearly to `rate` over `steps`
    training steps. The step counter is a buffer: it is saved with the model and advances in training mode only.

    Parameters
    ----------
    rate : float
        Final share of dropped activations, in [0, 1).
    block_size : int
        Side of a block in positions; maps smaller than it use their own side.
    steps : int
        Training steps over which the rate grows.
    """

    step: Tensor

    def __init__(self, rate: float, block_size: int, steps: int = DROP_BLOCK_STEPS) -> None:
        super().__init__()
        self.rate = rate
        self.block_size = block_size
        self.steps = steps
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, maps: Tensor) -> Tensor:
        """Drop blocks of `maps` (n, c, h, w) in training mode; the identity in evaluation mode."""
        if not self.training or self.rate == 0:
            return maps
        self.step += 1
        rate = self.rate * torch.clamp(self.step / self.steps, max=1.0)
        _, _, height, width = maps.shape
        size = min(self.block_size, height, width)
        corners = (height - size + 1) * (width - size + 1)
        gamma = rate * height * width / (size * size * corners)
        starts = torch.rand(*maps.shape[:2], height - size + 1, width - size + 1, device=maps.device) < gamma
        # each start drops the size x size block below and right of it
        dropped = F.max_pool2d(F.pad(starts.to(maps.dtype), [size - 1] * 4), kernel_size=size, stride=1)
        kept = 1 - dropped
        return maps * kept * (kept.numel() / kept.sum().clamp(min=1))


class ResidualBlock(nn.Module):
    """Apply three 3x3 convolutions with a 1x1 shortcut, halving the side (RFS flavour)."""

    def __init__(self, channels_in: int, channels_out: int, drop: nn.Module) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for index in range(3):
            layers += [
                nn.Conv2d(channels_in if index == 0 else channels_out, channels_out, 3, padding=1, bias=False),
                nn.BatchNorm2d(channels_out),
            ]
            if index < 2:
                layers.append(nn.LeakyReLU(0.1))
        self.body = nn.Sequential(*layers)
        self.shortcut = nn.Sequential(nn.Conv2d(channels_in, channels_out, 1, bias=False), nn.BatchNorm2d(channels_out))
        self.drop = drop

    def forward(self, maps: Tensor) -> Tensor:
        """Return maps (n, c', h // 2, w // 2) of maps (n, c, h, w)."""
        # the field writes LeakyReLU before MaxPool; the two commute, and after it there is a quarter of the work
        summed = F.max_pool2d(self.body(maps) + self.shortcut(maps), 2)
        return self.drop(F.leaky_relu(summed, 0.1))


class ResidualHead(nn.Module):
    r"""Add to features (n, m) what two linear layers make of them, :math:`x + W_2 \max(0, W_1 x + b_1) + b_2`.

    All four arrays have m rows. The second layer starts at zero, so that the head starts as the identity.
    """

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.first = nn.Linear(dimensions, dimensions)
        self.second = nn.Linear(dimensions, dimensions)
        for values in self.second.parameters():
            nn.init.zeros_(values)

    def forward(self, features: Tensor) -> Tensor:
        """Return features (n, m)."""
        return features + self.second(F.relu(self.first(features)))


class Backbone(nn.Module):
    """Embed images; the input normalisation is part of the module.

    Parameters
    ----------
    body : nn.Module
        Normalised images (n, c, h, w) to vectors (n, m).
    dimensions : int
        m.
    mean, std : sequence of float, length c
        Mean and deviation of images in [0, 1]. A grey image gets as many channels as there are numbers.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, body: nn.Module, dimensions: int, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.body = body
        self.dimensions = dimensions
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (n, m) of images (n, c, h, w), float in [0, 1]."""
        return self.body(self.normalized(images))

    def normalized(self, images: Tensor) -> Tensor:
        """Return images (n, c, h, w), float in [0, 1], as the body takes them."""
        return (images - self.mean) / self.std


def conv4(channels: int, size: int, width: int, *, averaged: bool = False) -> tuple[nn.Module, int]:
    """Build four conv-BatchNorm-MaxPool-ReLU layers, flattened: m = width * (size // 16)^2.

    `averaged` makes it that of RFS (Tian et al., 2020): the last layer has no MaxPool, and the mean over positions
    takes the place of flattening, so m = width. The field writes ReLU before MaxPool. The two commute, and after it
    there is a quarter of the work.
    """
    layers: list[nn.Module] = []
    for index in range(4):
        layers += [
            nn.Conv2d(channels if index == 0 else width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.MaxPool2d(2),
            nn.ReLU(),
        ]
    if averaged:
        del layers[-2]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), width
    return nn.Sequential(*layers, nn.Flatten()), width * (size // 16) ** 2


def resnet12(channels: int, width: int, drop_rate: float, drop_block: int) -> tuple[nn.Module, int]:
    """Build four residual blocks of width * (1, 2.5, 5, 10) channels and global average pooling: m = 10 * width.

    Dropout follows the first two blocks and DropBlock the last two, as in RFS (Tian et al., 2020).
    """
    widths = [channels, width, width * 5 // 2, width * 5, width * 10]
    drops: list[nn.Module] = [nn.Dropout(drop_rate), nn.Dropout(drop_rate)]
    drops += [DropBlock(drop_rate, drop_block), DropBlock(drop_rate, drop_block)]
    blocks = [ResidualBlock(widths[i], widths[i + 1], drop) for i, drop in enumerate(drops)]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten()), widths[-1]


def _initialise(body: nn.Module) -> None:
    for module in body.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="leaky_relu")


def build_backbone(
    *,
    name: str,
    channels: int,
    size: int,
    width: int,
    drop_rate: float,
    drop_block: int,
    mean: Sequence[float],
    std: Sequence[float],
    seed: int,
    side: int | None = None,
    interpolation: str = "bicubic",
    head: bool = False,
    residual_head: bool = False,
) -> Backbone:
    """Build a freshly initialised backbone.

    Convolutions are Kaiming normal with fan-out and gain sqrt(2), as in RFS; BatchNorm starts as the identity. Networks
    of timm start as timm makes them.

    Parameters
    ----------
    name : {"conv4", "conv4_rfs", "resnet12"} or "timm:<architecture>"
    channels, size : int
        Channels and side in pixels of the images.
    width : int
        Channels of the first layer or block.
    drop_rate, drop_block : float, int
        Drop rate and block size of resnet12; the others have no dropout.
    mean, std : sequence of float, length channels
        Or 3 for a network of timm, which sees a grey image three times.
    seed : int
        Seed of the initial weights; torch's global generator does not change.
    side : int, optional
        Pixels to which a network of timm has its images resized; by default `size`.
    interpolation : str
        Method of that.
    head : bool
        Whether only a linear map on top of a network of timm learns.
    residual_head : bool
        Whether the other networks end with a `ResidualHead`.

    Raises
    ------
    ValueError
        The name is unknown, or a size is below 1.
    MelaError
        timm lacks the network, or is not installed.
    """
    for key, value in (("channels", channels), ("size", size), ("width", width)):
        if value < 1:
            raise ValueError(f"{key}: expected 1 or more, got {value}")
    with seeded(seed):
        if name in ("conv4", "conv4_rfs"):
            body, dimensions = conv4(channels, size, width, averaged=name == "conv4_rfs")
        elif name == "resnet12":
            body, dimensions = resnet12(channels, width, drop_rate, drop_block)
        elif name.startswith(PREFIX):
            body, dimensions = pretrained_body(name, side or size, interpolation, head=head)
        else:
            raise ValueError(f"name: expected 'conv4', 'conv4_rfs', 'resnet12' or '{PREFIX}...', got {name!r}")
        if not name.startswith(PREFIX):
            _initialise(body)
            if residual_head:
                body = nn.Sequential(*body.children(), ResidualHead(dimensions))
    backbone = Backbone(body, dimensions, mean, std)
    for values in (*backbone.parameters(), *backbone.buffers()):
        # torch refuses to do so for five axes, which weights of some networks of timm have
        if values.ndim == 4:
            values.data = values.data.to(memory_format=torch.channels_last)
    return backbone
