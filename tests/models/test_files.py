"""Embeddings on disk."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from mela.errors import MelaError
from mela.inference.embedding import Embedding
from mela.models.backbones import Backbone, build_backbone
from mela.models.files import KIND, configure, is_trained, load_model, read_model, save_model
from mela.models.untrained import save_nothing
from mela.training.learner_files import load_learned
from tests.helpers.embedding import model_parameters as parameters

CPU = torch.device("cpu")
IMAGES = np.random.default_rng(0).integers(256, size=(30, 16, 16, 3)).astype(np.uint8)


def configured(**changes: Any) -> dict[str, Any]:
    return configure(parameters(**changes), IMAGES, np.arange(30))


CONFIGURATION = configured()


def trained(configuration: dict[str, Any] = CONFIGURATION) -> Backbone:
    """With running statistics and step counters away from their start."""
    backbone = build_backbone(**configuration, seed=3)
    for _ in range(2):
        backbone.train()(torch.rand(8, configuration["channels"], 16, 16, generator=torch.Generator().manual_seed(0)))
    return backbone


@pytest.mark.parametrize("residual_head", [False, True])
@pytest.mark.parametrize("name", ["conv4", "resnet12"])
def test_round_trip_is_exact(name: str, residual_head: bool, tmp_path: Path) -> None:
    configuration = configured(backbone=name, residual_head=residual_head)
    assert ("residual_head" in configuration) == residual_head, "models without it are as they were"
    backbone = trained(configuration)
    path = tmp_path / "models" / "psi.safetensors"

    save_model(path, backbone, configuration)
    loaded = load_model(path, CPU, IMAGES)

    assert not loaded.training
    torch.testing.assert_close(loaded.state_dict(), backbone.state_dict(), rtol=0, atol=0)
    if name == "resnet12":
        assert loaded.state_dict()["body.3.drop.step"] == 2
    batch = torch.rand(4, 3, 16, 16)
    assert torch.equal(loaded(batch), backbone.eval()(batch))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_same_model_same_bytes(tmp_path: Path) -> None:
    backbone = trained()
    for number in range(8):
        save_model(tmp_path / str(number), backbone, dict(reversed(CONFIGURATION.items())))
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
    given = {"mean": [0.1, 0.2, 0.3], "std": [0.4, 0.5, 0.6]}
    assert given.items() <= configured(**given).items()


@pytest.mark.parametrize(("mean", "std"), [([0.1], [0.2]), ([0.1] * 3, [0.2]), ([0.1] * 4, [0.2] * 3)])
def test_statistics_of_other_channels(mean: list[float], std: list[float]) -> None:
    message = rf"^model.mean, model.std: expected 3 numbers each.* got {len(mean)} and {len(std)};"
    with pytest.raises(MelaError, match=message):
        configured(mean=mean, std=std)


def write_truncated(path: Path, end: int) -> None:
    save_model(path, trained(), CONFIGURATION)
    path.write_bytes(path.read_bytes()[:end])


def write(path: Path, tensors: dict[str, torch.Tensor], **header: Any) -> None:
    contiguous = {name: value.contiguous() for name, value in tensors.items()}
    save_file(contiguous, path, metadata={"mela": json.dumps(header)})


def write_tensors(path: Path, tensors: dict[str, torch.Tensor], kind: str = KIND) -> None:
    write(path, tensors, kind=kind, configuration=CONFIGURATION)


def tensors() -> dict[str, torch.Tensor]:
    return dict(trained().state_dict())


def all_but(name: str) -> dict[str, torch.Tensor]:
    return {key: value for key, value in tensors().items() if key != name}


ONE = {"mean": torch.zeros(1)}
HALF = {"size": 16, "channels": 3}
NO_FILE, NO_TENSORS, NO_FIT = "no such file", "expected a safetensors file", "weights do not fit its configuration .*"
NO_KIND, NO_CONFIGURATION = f"expected a model of kind {KIND}, found ", "expected a backbone's configuration, got "
CASES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no file": (lambda path: None, NO_FILE),
    "a folder": (lambda path: path.mkdir(), NO_FILE),
    "empty": (lambda path: path.write_bytes(b""), NO_TENSORS),
    "text": (lambda path: path.write_text("psi\n" * 40), NO_TENSORS),
    "a table": (lambda path: pd.DataFrame({"image_id": [1]}).to_parquet(path), NO_TENSORS),
    "truncated": (lambda path: write_truncated(path, -100), NO_TENSORS),
    "a truncated header": (lambda path: write_truncated(path, 50), NO_TENSORS),
    "another kind": (lambda path: write_tensors(path, tensors(), "mela.classifier/1"), f"{NO_KIND}mela.classifier/1"),
    "no header": (lambda path: save_file(ONE, path), f"{NO_KIND}None"),
    "no configuration": (lambda path: write(path, ONE, kind=KIND), f"{NO_CONFIGURATION}'size'"),
    "half of one": (lambda path: write(path, ONE, kind=KIND, configuration=HALF), f"{NO_CONFIGURATION}.*missing"),
    "other shapes": (
        lambda path: write_tensors(path, dict(trained(configured(width=4)).state_dict())),
        f"{NO_FIT}size mismatch",
    ),
    "a tensor too few": (lambda path: write_tensors(path, all_but("body.3.drop.step")), f"{NO_FIT}Missing key"),
    "one too many": (lambda path: write_tensors(path, tensors() | {"head": torch.zeros(1)}), f"{NO_FIT}Unexpected key"),
}


@pytest.mark.parametrize("case", CASES)
def test_files_that_are_not_models(case: str, tmp_path: Path) -> None:
    spoil, problem = CASES[case]
    path = tmp_path / "psi.safetensors"
    spoil(path)
    with pytest.raises(MelaError, match=rf"\A{path}: [^\n]*{problem}[^\n]*\Z"):
        load_model(path, CPU, IMAGES)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_model(tmp_path / "psi.safetensors", trained(), CONFIGURATION)
    return tmp_path / "psi.safetensors"


def test_a_model_for_other_images(saved: Path) -> None:
    message = r"expected images of \(16, 16, 1\), the packed ones, got a model for \(16, 16, 3\)"
    with pytest.raises(MelaError, match=message):
        load_model(saved, CPU, IMAGES[..., :1])


def test_without_images_the_configuration_says_for_which_the_model_is(saved: Path) -> None:
    backbone, found = read_model(saved, CPU)
    assert found == CONFIGURATION
    assert not backbone.training
    assert torch.equal(backbone(torch.ones(1, 3, 16, 16)), load_model(saved, CPU, IMAGES)(torch.ones(1, 3, 16, 16)))


@pytest.mark.parametrize("change", [{"size": 16.5}, {"size": 8}, {"size": 10**9}, {"channels": 2}])
def test_without_images_a_model_has_to_be_for_usual_ones(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "psi.safetensors"
    configuration = configured(backbone="conv4") | change
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


def test_a_file_that_says_that_nothing_was_trained(saved: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "pruned.safetensors"
    save_nothing(nothing)
    assert (is_trained(saved), is_trained(nothing)) == (True, False)
    content = nothing.read_bytes()
    save_nothing(nothing)
    assert nothing.read_bytes() == content
    message = (
        f"{nothing}: expected an embedding, got none, since nothing was trained on these labels; set compare.pruned to "
        "true in the parameters and run the pipeline again, or name another model"
    )
    for read in (
        lambda: read_model(nothing, CPU),
        lambda: load_model(nothing, CPU, IMAGES),
        lambda: load_learned(nothing, CPU),
        lambda: Embedding.read(nothing, "cpu"),
    ):
        with pytest.raises(MelaError, match=f"^{re.escape(message)}$"):
            read()


def test_a_file_that_says_nothing_is_no_answer(tmp_path: Path) -> None:
    missing, damaged = tmp_path / "pruned.safetensors", tmp_path / "damaged.safetensors"
    damaged.write_bytes(b"x" * 100)
    with pytest.raises(MelaError, match=r"^[^\n]*pruned.safetensors: no such file; [^\n]*$"):
        is_trained(missing)
    with pytest.raises(MelaError, match=r"^[^\n]*damaged.safetensors: [^\n]*$"):
        is_trained(damaged)


def test_a_file_of_another_kind_is_trained_but_no_model(tmp_path: Path) -> None:
    """So that what is wrong with it is told by who reads it."""
    path = tmp_path / "psi.safetensors"
    save_file({}, path, metadata={"mela": json.dumps({"kind": "mela.other/1"})})
    assert is_trained(path)
    with pytest.raises(
        MelaError, match=r"expected a model of kind mela.backbone/1, found mela.other/1; train it again"
    ):
        read_model(path, CPU)
