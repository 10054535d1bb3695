"""Embeddings on disk."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from mela.errors import MelaError
from mela.models.backbones import Backbone, build_backbone
from mela.models.files import KIND, configure, load_model, read_model, save_model
from tests.helpers.embedding import model_parameters as parameters

CPU = torch.device("cpu")
IMAGES = np.random.default_rng(0).integers(256, size=(30, 16, 16, 3)).astype(np.uint8)


def trained(configuration: dict[str, Any]) -> Backbone:
    """With running statistics and step counters away from their start."""
    backbone = build_backbone(**configuration, seed=3)
    for _ in range(2):
        backbone.train()(torch.rand(8, configuration["channels"], 16, 16, generator=torch.Generator().manual_seed(0)))
    return backbone


@pytest.mark.parametrize("name", ["conv4", "resnet12"])
def test_round_trip_is_exact(name: str, tmp_path: Path) -> None:
    configuration = configure(parameters(backbone=name), IMAGES, np.arange(30))
    backbone = trained(configuration)
    path = tmp_path / "models" / "psi.safetensors"

    save_model(path, backbone, configuration)
    loaded = load_model(path, CPU, IMAGES)

    assert not loaded.training
    assert loaded.state_dict().keys() == backbone.state_dict().keys()
    for key, value in backbone.state_dict().items():
        assert loaded.state_dict()[key].dtype == value.dtype
        assert torch.equal(loaded.state_dict()[key], value), key
    if name == "resnet12":
        assert loaded.state_dict()["body.3.drop.step"] == 2
    batch = torch.rand(4, 3, 16, 16)
    assert torch.equal(loaded(batch), backbone.eval()(batch))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_same_model_same_bytes(tmp_path: Path) -> None:
    configuration = configure(parameters(), IMAGES, np.arange(30))
    backbone = trained(configuration)
    for number in range(8):
        save_model(tmp_path / str(number), backbone, dict(reversed(configuration.items())))
    assert len({file.read_bytes() for file in tmp_path.iterdir()}) == 1


def test_null_statistics_are_measured_on_the_given_images() -> None:
    image_ids = np.array([2, 3, 29])
    configuration = configure(parameters(), IMAGES, image_ids)
    pixels = IMAGES[image_ids].reshape(-1, 3) / 255
    assert configuration.pop("mean") == pytest.approx(pixels.mean(axis=0).tolist(), rel=1e-12)
    assert configuration.pop("std") == pytest.approx(pixels.std(axis=0).tolist(), rel=1e-9)
    known = {"name": "resnet12", "channels": 3, "size": 16, "width": 2, "drop_rate": 0.1, "drop_block": 2}
    assert configuration == known


def test_a_constant_channel_is_not_divided_by_zero() -> None:
    flat = np.full((5, 16, 16, 1), 77, dtype=np.uint8)
    configuration = configure(parameters(backbone="conv4"), flat, np.arange(5))
    assert configuration["mean"] == [77 / 255]
    assert configuration["std"] == [1.0]


def test_given_statistics_are_kept() -> None:
    configuration = configure(parameters(mean=[0.1, 0.2, 0.3], std=[0.4, 0.5, 0.6]), IMAGES, np.arange(30))
    assert configuration["mean"] == [0.1, 0.2, 0.3]
    assert configuration["std"] == [0.4, 0.5, 0.6]


@pytest.mark.parametrize(("mean", "std"), [([0.1], [0.2]), ([0.1] * 3, [0.2]), ([0.1] * 4, [0.2] * 3)])
def test_statistics_of_other_channels(mean: list[float], std: list[float]) -> None:
    with pytest.raises(
        MelaError, match=rf"^model.mean, model.std: expected 3 numbers each.* got {len(mean)} and {len(std)};"
    ):
        configure(parameters(mean=mean, std=std), IMAGES, np.arange(30))


def write_parquet(path: Path) -> None:
    pd.DataFrame({"image_id": [1]}).to_parquet(path)


def write_truncated(path: Path) -> None:
    configuration = configure(parameters(), IMAGES, np.arange(30))
    save_model(path, trained(configuration), configuration)
    path.write_bytes(path.read_bytes()[:-100])


def write_truncated_header(path: Path) -> None:
    write_truncated(path)
    path.write_bytes(path.read_bytes()[:50])


def write_tensors(path: Path, tensors: dict[str, torch.Tensor], kind: str = KIND) -> None:
    header = {"kind": kind, "configuration": configure(parameters(), IMAGES, np.arange(30))}
    contiguous = {name: value.contiguous() for name, value in tensors.items()}
    save_file(contiguous, path, metadata={"mela": json.dumps(header)})


def tensors_of_a_model() -> dict[str, torch.Tensor]:
    return dict(trained(configure(parameters(), IMAGES, np.arange(30))).state_dict())


def write_other_kind(path: Path) -> None:
    write_tensors(path, tensors_of_a_model(), "mela.classifier/1")


def write_no_header(path: Path) -> None:
    save_file({"mean": torch.zeros(1)}, path)


def write_header(path: Path, header: dict[str, Any]) -> None:
    save_file({"mean": torch.zeros(1)}, path, metadata={"mela": json.dumps({"kind": KIND} | header)})


def write_no_configuration(path: Path) -> None:
    write_header(path, {})


def write_half_a_configuration(path: Path) -> None:
    write_header(path, {"configuration": {"size": 16, "channels": 3}})


def write_other_shapes(path: Path) -> None:
    configuration = configure(parameters(width=4), IMAGES, np.arange(30))
    write_tensors(path, dict(trained(configuration).state_dict()))


def write_tensor_too_few(path: Path) -> None:
    tensors = tensors_of_a_model()
    del tensors["body.3.drop.step"]
    write_tensors(path, tensors)


def write_tensor_too_many(path: Path) -> None:
    write_tensors(path, tensors_of_a_model() | {"head": torch.zeros(1)})


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "no such file"),
        (lambda path: path.write_bytes(b""), "expected a safetensors file"),
        (lambda path: path.write_text("psi\n" * 40), "expected a safetensors file"),
        (write_parquet, "expected a safetensors file"),
        (write_truncated, "expected a safetensors file"),
        (write_truncated_header, "expected a safetensors file"),
        (write_other_kind, f"expected a model of kind {KIND}, found mela.classifier/1"),
        (write_no_header, f"expected a model of kind {KIND}, found None"),
        (write_no_configuration, "expected a backbone's configuration, got 'size'"),
        (write_half_a_configuration, "expected a backbone's configuration, got .*missing"),
        (write_other_shapes, "tensors do not fit its configuration: .*size mismatch"),
        (write_tensor_too_few, "tensors do not fit its configuration: .*Missing key"),
        (write_tensor_too_many, "tensors do not fit its configuration: .*Unexpected key"),
    ],
)
def test_files_that_are_not_models(write, problem: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "psi.safetensors"
    write(path)
    with pytest.raises(MelaError, match=problem) as caught:
        load_model(path, CPU, IMAGES)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_model_for_other_images(tmp_path: Path) -> None:
    path = tmp_path / "psi.safetensors"
    configuration = configure(parameters(), IMAGES, np.arange(30))
    save_model(path, trained(configuration), configuration)
    with pytest.raises(
        MelaError, match=r"expected images of \(16, 16, 1\), the packed ones, got a model for \(16, 16, 3\)"
    ):
        load_model(path, CPU, IMAGES[..., :1])


def test_without_images_the_configuration_says_for_which_the_model_is(tmp_path: Path) -> None:
    path = tmp_path / "psi.safetensors"
    configuration = configure(parameters(), IMAGES, np.arange(30))
    save_model(path, trained(configuration), configuration)
    backbone, found = read_model(path, CPU)
    assert found == configuration
    assert not backbone.training
    assert torch.equal(backbone(torch.ones(1, 3, 16, 16)), load_model(path, CPU, IMAGES)(torch.ones(1, 3, 16, 16)))


@pytest.mark.parametrize("change", [{"size": 16.5}, {"size": 8}, {"size": 10**9}, {"channels": 2}])
def test_without_images_a_model_has_to_be_for_usual_ones(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "psi.safetensors"
    configuration = configure(parameters(backbone="conv4"), IMAGES, np.arange(30)) | change
    channels = configuration["channels"]
    statistics = {"channels": channels, "mean": [0.5] * channels, "std": [0.5] * channels}
    backbone = build_backbone(**configuration | statistics, seed=0)
    save_model(path, backbone, configuration)
    message = (
        f"{path}: expected a model for images of 16 to 512 pixels and 1 or 3 channels, got "
        f"size={configuration['size']!r} and channels={channels!r}; train it again"
    )
    with pytest.raises(MelaError, match=f"^{re.escape(message)}$"):
        read_model(path, CPU)
