"""Shapes, initial weights and dropout of the backbones."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.models.backbones import Backbone, DropBlock, build_backbone
from tests.helpers.embedding import configuration

RESNET12 = configuration("resnet12", channels=3, size=32, width=64)
CONV4 = RESNET12 | {"name": "conv4", "width": 16}
SMALL_RESNET12 = RESNET12 | {"width": 4}


def build(configuration: dict[str, Any], seed: int = 0) -> Backbone:
    return build_backbone(**configuration, seed=seed)


def images(count: int, channels: int, size: int) -> Tensor:
    return torch.rand(count, channels, size, size, generator=torch.Generator().manual_seed(1))


def n_parameters(backbone: Backbone) -> int:
    return sum(parameter.numel() for parameter in backbone.parameters())


@pytest.fixture(scope="module")
def resnet12() -> Backbone:
    return build(RESNET12)


@pytest.mark.parametrize(("size", "sides"), [(32, [16, 8, 4, 2]), (84, [42, 21, 10, 5])])
def test_resnet12_shapes(resnet12: Backbone, size: int, sides: list[int]) -> None:
    maps = images(2, 3, size)
    shapes = []
    resnet12.eval()
    with torch.inference_mode():
        features = resnet12(maps)
        for block in list(resnet12.body.children())[:4]:
            maps = block(maps)
            shapes.append(tuple(maps.shape[1:]))
    assert shapes == [(width, side, side) for width, side in zip([64, 160, 320, 640], sides, strict=True)]
    assert features.shape == (2, 640)
    assert resnet12.dimensions == 640


def test_resnet12_parameters(resnet12: Backbone) -> None:
    """Per block: 3x3 convolutions 9 c_in c + 2 * 9 c^2, the 1x1 shortcut c_in c, four BatchNorms 2 c each."""
    widths = [3, 64, 160, 320, 640]
    expected = sum(9 * c_in * c + 2 * 9 * c * c + c_in * c + 4 * 2 * c for c_in, c in pairwise(widths))
    assert n_parameters(resnet12) == expected == 12_424_320


@pytest.mark.parametrize(
    ("channels", "size", "width", "dimensions"), [(1, 28, 64, 64), (3, 32, 64, 256), (3, 84, 8, 200), (1, 16, 5, 5)]
)
def test_conv4_shapes_and_parameters(channels: int, size: int, width: int, dimensions: int) -> None:
    backbone = build(configuration(channels=channels, size=size, width=width)).eval()
    assert backbone(images(2, channels, size)).shape == (2, dimensions)
    assert backbone.dimensions == dimensions
    assert n_parameters(backbone) == 9 * channels * width + 3 * 9 * width**2 + 4 * 2 * width


def test_conv4_of_rfs() -> None:
    """9 * 3 * 64 + 3 * 9 * 64 * 64 weights of convolutions and 4 * 2 * 64 of BatchNorm; three poolings leave 4 x 4."""
    backbone = build(CONV4 | {"name": "conv4_rfs", "width": 64}).eval()
    assert n_parameters(backbone) == 1_728 + 110_592 + 512 == 112_832
    batch = images(2, 3, 32)
    *layers, average, flat = backbone.body.children()
    maps = backbone.normalized(batch)
    sides = [(maps := layer(maps)).shape[-1] for layer in layers]
    assert [side for side, layer in zip(sides, layers, strict=True) if isinstance(layer, nn.ReLU)] == [16, 8, 4, 4]
    assert maps.shape == (2, 64, 4, 4)
    torch.testing.assert_close(backbone(batch), maps.mean((2, 3)))
    torch.testing.assert_close(flat(average(maps)), backbone(batch))
    assert backbone.dimensions == 64


@pytest.mark.parametrize("name", ["conv4", "conv4_rfs", "resnet12"])
def test_a_residual_head_starts_as_the_identity(name: str) -> None:
    plain = build(SMALL_RESNET12 | {"name": name}).eval()
    own = build(SMALL_RESNET12 | {"name": name, "residual_head": True}).eval()
    batch, m = images(4, 3, 32), plain.dimensions
    assert own.dimensions == m
    assert n_parameters(own) == n_parameters(plain) + 2 * (m * m + m)
    assert torch.equal(own(batch), plain(batch))
    head = own.body[-1]
    for values in head.second.parameters():
        nn.init.normal_(values, generator=torch.Generator().manual_seed(0))
    features = plain(batch)
    hidden = (features @ head.first.weight.T + head.first.bias).clamp(min=0)
    expected = features + hidden @ head.second.weight.T + head.second.bias
    torch.testing.assert_close(own(batch), expected, rtol=1e-4, atol=1e-5)


def test_convolutions_start_kaiming_normal_by_fan_out(resnet12: Backbone) -> None:
    convolutions = [module for module in resnet12.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) == 16
    for convolution in convolutions:
        weights = convolution.weight.detach().double()
        std = math.sqrt(2) / math.sqrt(convolution.out_channels * math.prod(convolution.kernel_size))
        assert abs(weights.std().item() / std - 1) < 5 / math.sqrt(2 * weights.numel())
        assert abs(weights.mean().item()) < 5 * std / math.sqrt(weights.numel())
        assert convolution.bias is None
        kurtosis = ((weights / std) ** 4).mean().item()
        assert abs(kurtosis - 3) < 5 * math.sqrt(96 / weights.numel())


@pytest.mark.parametrize("configuration", [CONV4, SMALL_RESNET12], ids=["conv4", "resnet12"])
def test_batch_norm_starts_as_the_identity(configuration: dict[str, Any]) -> None:
    norms = [module for module in build(configuration).modules() if isinstance(module, nn.BatchNorm2d)]
    assert len(norms) == (4 if configuration["name"] == "conv4" else 16)
    for norm in norms:
        assert norm.weight.eq(1).all()
        assert norm.bias.eq(0).all()
        maps = torch.randn(2, norm.num_features, 3, 3)
        torch.testing.assert_close(norm.eval()(maps), maps, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("configuration", [CONV4, SMALL_RESNET12], ids=["conv4", "resnet12"])
def test_the_seed_alone_decides_the_weights(configuration: dict[str, Any]) -> None:
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = build(configuration, seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(6)
    again, other = build(configuration, seed=3), build(configuration, seed=4)
    torch.testing.assert_close(first.state_dict(), again.state_dict(), rtol=0, atol=0)
    for one, two in zip(first.modules(), other.modules(), strict=True):
        if isinstance(one, nn.Conv2d):
            assert not torch.equal(one.weight, two.weight)


def test_unknown_name() -> None:
    with pytest.raises(ValueError, match=r"expected 'conv4', 'conv4_rfs', 'resnet12' or 'timm:...', got 'resnet18'"):
        build(CONV4 | {"name": "resnet18"})


def test_input_is_normalised_per_channel() -> None:
    mean, std = [0.1, 0.2, 0.3], [0.5, 0.25, 2.0]
    batch = images(4, 3, 2)
    features = Backbone(nn.Flatten(), 12, mean, std)(batch).view(4, 3, 2, 2)
    for channel in range(3):
        torch.testing.assert_close(features[:, channel], (batch[:, channel] - mean[channel]) / std[channel])


def test_a_block_is_what_the_paper_draws() -> None:
    block = build(SMALL_RESNET12).eval().body[1]
    maps = torch.randn(2, 4, 9, 9, generator=torch.Generator().manual_seed(0))
    norm = 1 / math.sqrt(1 + 1e-5)
    hidden = maps
    for index, convolution in enumerate(block.body[i] for i in (0, 3, 6)):
        hidden = norm * F.conv2d(hidden, convolution.weight, padding=1)
        if index < 2:
            hidden = torch.where(hidden > 0, hidden, 0.1 * hidden)
    summed = hidden + norm * F.conv2d(maps, block.shortcut[0].weight)
    expected = F.max_pool2d(torch.where(summed > 0, summed, 0.1 * summed), 2)
    torch.testing.assert_close(block(maps), expected, rtol=1e-4, atol=1e-5)


def trained_drop_block(rate: float, block_size: int, *, share_of_steps: float = 1.0) -> DropBlock:
    """In training mode, such that the next call is step `share_of_steps` * `steps`."""
    drop = DropBlock(rate, block_size, steps=100).train()
    drop.step.fill_(round(100 * share_of_steps) - 1)
    return drop


def dropped(drop: DropBlock, count: int, side: int, seed: int = 0) -> Tensor:
    """Bool (count, side, side): what `drop` sets to zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return drop(torch.ones(1, count, side, side))[0] == 0


def test_drop_block_is_the_identity_in_evaluation_and_at_rate_zero() -> None:
    maps = torch.randn(2, 3, 6, 6)
    assert torch.equal(trained_drop_block(0.5, 2).eval()(maps), maps)
    assert torch.equal(trained_drop_block(0.0, 2)(maps), maps)


@pytest.mark.parametrize("block_size", [2, 3, 5])
def test_drop_block_drops_squares(block_size: int) -> None:
    zero = dropped(trained_drop_block(0.02, block_size), 2000, 11)
    squares = zero.unfold(1, block_size, 1).unfold(2, block_size, 1).all(-1).all(-1)
    covered = F.conv_transpose2d(squares[:, None].float(), torch.ones(1, 1, block_size, block_size))[:, 0] > 0
    assert torch.equal(zero, covered)
    per_map = zero.sum((1, 2))
    assert per_map[per_map > 0].min() == block_size**2
    assert (per_map == 0).any()


def test_drop_block_larger_than_the_map_drops_it_whole() -> None:
    zero = dropped(trained_drop_block(0.3, 5), 500, 3).view(500, -1)
    assert torch.equal(zero.any(1), zero.all(1))
    assert zero.any()
    assert not zero.all()


@pytest.mark.parametrize("share_of_steps", [0.25, 0.5, 1.0, 7.0])
@pytest.mark.parametrize(("block_size", "side"), [(2, 4), (2, 2), (5, 10), (5, 5), (1, 6)])
def test_drop_block_rate_grows_linearly(block_size: int, side: int, share_of_steps: float) -> None:
    """Against the exact expectation; a position is dropped unless none of the blocks that cover it is."""
    rate = 0.1 * min(share_of_steps, 1)
    starts = side - block_size + 1
    gamma = rate * side**2 / (block_size**2 * starts**2)
    covering = F.conv_transpose2d(torch.ones(1, 1, starts, starts), torch.ones(1, 1, block_size, block_size))
    expected = (1 - (1 - gamma) ** covering).mean().item()
    assert 0.9 * rate < expected <= rate * (1 + 1e-6)

    zero = dropped(trained_drop_block(0.1, block_size, share_of_steps=share_of_steps), 20_000, side)

    shares = zero.double().mean((1, 2))
    assert abs(shares.mean().item() - expected) < 4 * shares.std().item() / math.sqrt(len(shares))


def test_drop_block_keeps_the_sum_of_constant_maps_and_the_pattern_of_others() -> None:
    maps = torch.rand(8, 16, 10, 10, generator=torch.Generator().manual_seed(0)) + 1
    torch.manual_seed(0)
    outputs = trained_drop_block(0.1, 3)(maps)
    factors = (outputs / maps)[outputs != 0]
    assert 0.8 < len(factors) / maps.numel() < 0.95
    torch.testing.assert_close(factors, torch.full_like(factors, maps.numel() / len(factors)))


def test_drop_block_counts_training_steps_only_and_saves_them() -> None:
    drop = DropBlock(0.1, 2).train()
    for _ in range(3):
        drop(torch.ones(1, 1, 4, 4))
    drop.eval()(torch.ones(1, 1, 4, 4))
    assert drop.state_dict() == {"step": torch.tensor(3)}
    resumed = DropBlock(0.1, 2)
    resumed.load_state_dict(drop.state_dict())
    resumed.train()(torch.ones(1, 1, 4, 4))
    assert resumed.step == 4
    assert drop.steps == 40_000


def test_drop_block_is_active_in_the_last_two_blocks_of_resnet12() -> None:
    backbone = build(SMALL_RESNET12 | {"size": 84, "drop_block": 5, "drop_rate": 0.3})
    drops = [block.drop for block in list(backbone.body.children())[:4]]
    assert [type(drop) for drop in drops] == [nn.Dropout, nn.Dropout, DropBlock, DropBlock]
    assert [drop.p for drop in drops[:2]] == [0.3, 0.3]
    assert [(drop.rate, drop.block_size, drop.steps) for drop in drops[2:]] == [(0.3, 5, 40_000)] * 2
    assert {"body.2.drop.step", "body.3.drop.step"} <= backbone.state_dict().keys()
    shares = []
    for drop in drops:
        if isinstance(drop, DropBlock):
            drop.step.fill_(40_000)
        drop.register_forward_hook(
            lambda _, inputs, output: shares.append((output == 0)[inputs[0] != 0].float().mean().item())
        )
    batch = images(4, 3, 84)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        backbone.train()(batch)
    assert all(0.1 < share < 0.5 for share in shares)
    backbone.eval()(batch)
    assert shares[4:] == [0, 0, 0, 0]
