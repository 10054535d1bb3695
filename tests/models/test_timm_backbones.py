"""Networks of timm, from weights that are made here: nothing is downloaded."""

import re
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save, save_file
from torch import Tensor, nn
from torch.nn import functional as F

from mela import FewShotClassifier
from mela.errors import MelaError
from mela.inference.export import export
from mela.io import feature_tables, schemas, store
from mela.models import timm_backbones as pretrained
from mela.models.backbones import Backbone, build_backbone
from mela.models.files import configure, read_model, save_model
from mela.models.timm_backbones import start_from
from mela.params import ModelParams
from mela.runtime.compute import Compute
from mela.runtime.team import Team
from tests.helpers.commands import mela
from tests.helpers.embedding import batch_of, model_parameters, state_of
from tests.helpers.embedding import configuration as small
from tests.helpers.extras import HAS_ONNX
from tests.helpers.project import change, run_stages
from tests.helpers.weights import NAME, ON_WEIGHTS, start_from_weights
from tests.helpers.weights import weights as state

timm = pytest.importorskip("timm", reason="networks of timm are not tested without it")

IMAGES = np.random.default_rng(0).integers(256, size=(6, 20, 20, 3)).astype(np.uint8)
BATCH = batch_of(IMAGES)
FIRST = "body.network.conv1.0.weight"


def plain(name: str = "test_resnet", **options: Any) -> nn.Module:
    """The same network as timm has it, without its classifier."""
    network = timm.create_model(name, num_classes=0, **options)
    network.load_state_dict(state(name), strict=False)
    return network.eval()  # type: ignore[no-any-return]


def parameters(**changes: Any) -> ModelParams:
    return model_parameters(**{"backbone": NAME, "weights": "file.safetensors", "width": 64} | changes)


def untrained() -> Backbone:
    return build_backbone(**configure(parameters(), IMAGES, np.arange(6)), seed=0)


def started(folder: Path, images: Any = IMAGES, **changes: Any) -> tuple[Backbone, dict[str, Any]]:
    """A backbone that starts from the weights, and its configuration."""
    settings = parameters(**changes)
    save_file(state(settings.backbone.removeprefix("timm:")), folder / "file.safetensors")
    configuration = configure(settings, images, np.arange(len(images)))
    backbone = build_backbone(**configuration, seed=0)
    start_from(backbone.body, settings.backbone, settings.weights, folder)
    return backbone, configuration


@pytest.mark.slow
@pytest.mark.versions
@pytest.mark.parametrize("side", [None, 64], ids=["its own side", "the side asked for"])
@pytest.mark.parametrize("name", ["test_resnet", "test_vit", "test_convnext"])
def test_features_are_those_of_timm_with_its_own_normalisation(name: str, side: int | None, tmp_path: Path) -> None:
    """Positions of a vision transformer are those of its own side, interpolated."""
    backbone, configuration = started(tmp_path, backbone=f"timm:{name}", input_size=side)
    own = timm.data.resolve_model_data_config(plain(name))
    assert configuration["side"] == (side or own["input_size"][1])
    mean, std = (torch.tensor(own[key]).view(1, 3, 1, 1) for key in ("mean", "std"))
    resized = F.interpolate((BATCH - mean) / std, size=configuration["side"], mode=own["interpolation"])
    with torch.inference_mode():
        expected = plain(name, **{"dynamic_img_size": True} if side and "vit" in name else {})(resized)
        assert backbone.dimensions == expected.shape[1]
        torch.testing.assert_close(backbone.eval()(BATCH), expected)
    save_model(tmp_path / "model.safetensors", backbone, configuration)
    loaded, _ = read_model(tmp_path / "model.safetensors", torch.device("cpu"))
    with torch.inference_mode():
        assert torch.equal(loaded(BATCH), backbone(BATCH))
    # the first network is exported by the test of round trips below
    if side and name != "test_resnet" and HAS_ONNX:
        assert export("onnx", "x.onnx", loaded, configuration).difference < 1e-4


def test_images_of_the_side_that_is_asked_for_stay_as_they_are(tmp_path: Path) -> None:
    backbone, _ = started(tmp_path, input_size=20)
    with torch.inference_mode():
        expected = plain()(backbone.normalized(BATCH))
        torch.testing.assert_close(backbone.eval()(BATCH), expected)


@pytest.mark.parametrize(
    ("name", "side", "reason"),
    [
        ("test_vit", 50, r"Input height \(50\) should be divisible by patch size \(16\)."),
        ("test_convnext", 16, "Calculated padded input size per channel: .*"),
        ("mixer_s32_224", 64, r"Input height \(64\) doesn't match model \(224\)."),
    ],
)
def test_sides_that_a_network_does_not_take(name: str, side: int, reason: str) -> None:
    configuration = configure_any() | {"name": f"timm:{name}", "side": side}
    message = (
        rf"^model.input_size: expected a side that timm:{name} takes, got {side} \({reason}\); remove the key, which "
        "leaves the network its own side, or choose another network$"
    )
    with pytest.raises(MelaError, match=message):
        build_backbone(**configuration, seed=0)


def test_weights_of_five_axes() -> None:
    """torch lays out four axes by channels last, and refuses more, such as those of a lambda layer's positions."""
    network = build_backbone(**configure_any() | {"name": "timm:lambda_resnet26t", "side": 64}, seed=0)
    axes = {values.ndim for values in network.parameters()}
    assert {4, 5} <= axes
    assert all(
        values.is_contiguous(memory_format=torch.channels_last) for values in network.parameters() if values.ndim == 4
    )
    assert network.eval()(BATCH).shape == (len(BATCH), 2048)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", ["conv4", "resnet12"])
def test_weights_are_laid_out_as_torch_does(name: str, channels: int) -> None:
    """Also where several layouts have the same order, since convolutions choose their algorithm by strides."""
    size = {"channels": channels, "size": 32, "width": 8, "drop_rate": 0.0, "drop_block": 1}
    network = build_backbone(name=name, **size, mean=[0.5] * channels, std=[0.25] * channels, seed=0)
    expected = deepcopy(network).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    for mine, theirs in zip(network.state_dict().values(), expected.state_dict().values(), strict=True):
        assert mine.stride() == theirs.stride()


def test_larger_images_are_smoothed_when_they_shrink(tmp_path: Path) -> None:
    backbone, _ = started(tmp_path)
    fine = torch.zeros(1, 3, 320, 320)
    # stripes of a pixel, which sampling every other one would take for white
    fine[..., ::2] = 1
    with torch.inference_mode():
        grey = backbone.eval()(torch.full((1, 3, 160, 160), 0.5))
        torch.testing.assert_close(backbone(fine), grey, rtol=0.1, atol=0.1 * float(grey.abs().max()))


def test_grey_images_are_seen_three_times(tmp_path: Path) -> None:
    grey = IMAGES[..., :1]
    backbone, configuration = started(tmp_path, grey)
    assert configuration["channels"] == 1
    assert len(configuration["mean"]) == 3
    batch = BATCH[:, :1]
    with torch.inference_mode():
        torch.testing.assert_close(backbone.eval()(batch), backbone(batch.expand(-1, 3, -1, -1)))


def test_a_given_normalisation_counts(tmp_path: Path) -> None:
    _, configuration = started(tmp_path, mean=[0.1, 0.2, 0.3], std=[1.0, 1.0, 1.0])
    assert configuration["mean"] == [0.1, 0.2, 0.3]
    with pytest.raises(MelaError, match="expected 3 numbers each, one per channel of the network, got 1 and 1"):
        started(tmp_path, IMAGES[..., :1], mean=[0.1], std=[1.0])


def learn(backbone: Backbone) -> None:
    optimizer = torch.optim.SGD(backbone.parameters(), lr=0.01, weight_decay=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        backbone.train()(BATCH).square().sum().backward()
        optimizer.step()


def test_a_head_starts_as_nothing_and_learns_alone(tmp_path: Path) -> None:
    backbone, _ = started(tmp_path, train="head")
    whole, _ = started(tmp_path)
    with torch.inference_mode():
        torch.testing.assert_close(backbone.eval()(BATCH), whole.eval()(BATCH))
    before = state_of(backbone)
    learn(backbone)
    changed = {name for name, value in backbone.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"body.head.weight"}


def test_all_of_it_learns_otherwise(tmp_path: Path) -> None:
    backbone, _ = started(tmp_path)
    before = state_of(backbone)
    learn(backbone)
    for name, value in backbone.state_dict().items():
        assert torch.equal(value, before[name]) == (name in ("mean", "std")), name


@pytest.mark.slow
@pytest.mark.parametrize("train", ["all", "head"])
def test_round_trip_without_the_weights_file(train: str, tmp_path: Path) -> None:
    backbone, configuration = started(tmp_path, train=train)
    learn(backbone)
    save_model(tmp_path / "model.safetensors", backbone, configuration)
    (tmp_path / "file.safetensors").unlink()
    loaded, found = read_model(tmp_path / "model.safetensors", torch.device("cpu"))
    assert found == configuration
    with torch.inference_mode():
        assert torch.equal(loaded(BATCH), backbone.eval()(BATCH))
    if train == "head" and HAS_ONNX:
        assert export("onnx", "x.onnx", loaded, configuration).difference < 1e-4


def test_without_weights_the_seed_decides() -> None:
    configuration = configure(parameters(weights="none"), IMAGES, np.arange(6))
    one, same, other = (build_backbone(**configuration, seed=seed) for seed in (0, 0, 1))
    start_from(one.body, NAME, "none", Path("nowhere"))
    torch.testing.assert_close(one.body.state_dict(), same.body.state_dict(), rtol=0, atol=0)
    assert not torch.equal(one.state_dict()[FIRST], other.state_dict()[FIRST])


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_files_of_several_kinds(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{suffix}"
    if suffix == ".pth":
        # as training programs keep them, from several GPUs
        torch.save({"state_dict": {f"module.{name}": value for name, value in state().items()}, "epoch": 3}, path)
    else:
        save_file(state(), path)
    backbone = untrained()
    start_from(backbone.body, NAME, path.name, tmp_path)
    assert torch.equal(backbone.state_dict()[FIRST], state()["conv1.0.weight"])


class Evil:
    def __reduce__(self) -> Any:
        return (print, ("it ran",))


def without(name: str) -> dict[str, Tensor]:
    return {key: value for key, value in state().items() if key != name}


def spoiled(name: str, value: float) -> dict[str, Tensor]:
    """Weights of which a single number is another one."""
    tensor = state()[name].clone()
    tensor.view(-1)[0] = value
    return state() | {name: tensor}


NOT_FINITE = r"got NaN or infinity in {}; no training can mend them: name another file under model\.weights$"


BAD: dict[str, tuple[Callable[[], dict[str, Tensor] | bytes], str]] = {
    "missing": (lambda: without("conv1.0.weight"), "conv1.0.weight is missing; "),
    "renamed": (lambda: without("conv1.0.weight") | {"other": torch.ones(1)}, r"is missing \(and 1 more\); correct"),
    "more": (lambda: state() | {"layer9.weight": torch.ones(2)}, "layer9.weight is not known; "),
    "shape": (lambda: state() | {"bn1.bias": torch.ones(3)}, r"bn1.bias has shape \(3,\) in place of \(\d+,\); "),
    "another": (lambda: state("test_vit"), r"is missing \(and \d+ more\); correct model.backbone or the file$"),
    "NaN": (lambda: spoiled("conv1.0.weight", torch.nan), NOT_FINITE.format("conv1.0.weight")),
    "infinity": (lambda: spoiled("bn1.running_var", torch.inf), NOT_FINITE.format("bn1.running_var")),
    "damaged": (lambda: b"nonsense", r"expected a file of weights, got .*; fetch it again$"),
    "empty": (lambda: b"", r"expected a file of weights, got .*; fetch it again$"),
}


@pytest.mark.parametrize("case", BAD)
def test_weights_that_do_not_fit(case: str, tmp_path: Path) -> None:
    make, message = BAD[case]
    content = make()
    (tmp_path / "x.safetensors").write_bytes(content if isinstance(content, bytes) else save(content))
    backbone = untrained()
    before = state_of(backbone)
    with pytest.raises(MelaError, match=rf"\A{tmp_path}/x.safetensors: (?=expected )[^\n]*{message}[^\n]*\Z"):
        start_from(backbone.body, NAME, "x.safetensors", tmp_path)
    torch.testing.assert_close(backbone.state_dict(), before, rtol=0, atol=0)


def test_a_file_that_would_run_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"conv1.0.weight": Evil()}, tmp_path / "x.pth")
    backbone = untrained()
    with pytest.raises(MelaError, match="expected a file of weights, got "):
        start_from(backbone.body, NAME, "x.pth", tmp_path)
    assert "it ran" not in capsys.readouterr().out


def test_no_such_file(tmp_path: Path) -> None:
    backbone = untrained()
    with pytest.raises(MelaError, match=r"^model.weights: expected the file .*x.pth, found none; put it there"):
        start_from(backbone.body, NAME, "x.pth", tmp_path)


def test_the_download_is_left_to_timm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = timm.create_model

    def fetch(name: str, *, pretrained: bool = False, **arguments: Any) -> nn.Module:
        if pretrained and name != "test_resnet":
            raise OSError("no route to host")
        return plain() if pretrained else made(name, **arguments)

    monkeypatch.setattr(timm, "create_model", fetch)
    backbone = untrained()
    start_from(backbone.body, NAME, "timm", tmp_path)
    assert torch.equal(backbone.state_dict()[FIRST], state()["conv1.0.weight"])
    with pytest.raises(MelaError, match=r"got no route to host; put a file into .* and name it under model"):
        start_from(backbone.body, "timm:test_vit", "timm", tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("timm:resnet19", r"expected a network of timm [\d.]+, such as resnet\d+.*, got 'resnet19'$"),
        ("timm:test_resnet.nobody", "expected a network of timm, got .*nobody.*; correct it$"),
        ("timm:vit_base_patch16_siglip_gap_224.nobody", "model.backbone: expected a network of timm, got "),
    ],
)
def test_networks_that_are_not_there(name: str, message: str) -> None:
    with pytest.raises(MelaError, match=message):
        configure(parameters(backbone=name), IMAGES, np.arange(6))


MISSING = (
    "model.backbone: expected the package timm, which has the networks timm:<name>, found none; install it by `make "
    "setup` in a clone of this project, or elsewhere by `pip install timm`"
)


class Absent:
    """A finder of modules by which some are not there, or cannot be imported."""

    def __init__(self, name: str, error: Exception | None = None) -> None:
        self.name, self.error = name, error

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name.partition(".")[0] == self.name:
            raise self.error or ModuleNotFoundError(f"No module named {name!r}", name=name)


def without_timm(monkeypatch: pytest.MonkeyPatch, finder: Absent) -> None:
    pretrained.manners.cache_clear()
    for name in [*sys.modules]:
        if name.partition(".")[0] == "timm":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The same advice wherever it is missed: a file of weights that nobody could read is not to be fetched again."""
    backbone, _ = started(tmp_path)
    without_timm(monkeypatch, Absent("timm"))
    for needs_it in (
        lambda: configure(parameters(), IMAGES, np.arange(6)),
        lambda: start_from(backbone.body, NAME, "file.safetensors", tmp_path),
        lambda: start_from(backbone.body, NAME, "timm", tmp_path),
    ):
        with pytest.raises(MelaError, match=f"^{re.escape(MISSING)}$"):
            needs_it()


@pytest.mark.parametrize("command", [None, ("predict", "--support", "s", "--query", "s/a/0.png"), ("export",)])
def test_a_model_without_the_package(
    command: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It would not help to train the model again."""
    monkeypatch.chdir(tmp_path)
    backbone, configuration = started(tmp_path)
    save_model(Path("model.safetensors"), backbone, configuration)
    for number, image in enumerate(IMAGES[:2]):
        Path("s", "ab"[number]).mkdir(parents=True)
        Image.fromarray(image).save(Path("s", "ab"[number], "0.png"))
    without_timm(monkeypatch, Absent("timm"))
    if command is None:
        with pytest.raises(MelaError, match=f"^model.safetensors: {re.escape(MISSING)}$"):
            read_model(Path("model.safetensors"), torch.device("cpu"))
        return
    more = ["--torch", "x.pt2"] if command == ("export",) else []
    assert mela(*command, *more, "--model", "model.safetensors").stderr == f"error: model.safetensors: {MISSING}\n"


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'huggingface_hub'", name="huggingface_hub"),
        ImportError("cannot import name 'x' from 'torch'"),
        RuntimeError("operator torchvision::nms does not exist"),
    ],
)
def test_a_package_that_is_there_and_does_not_work(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """To install what is installed would not help."""
    without_timm(monkeypatch, Absent("timm", error))
    message = (
        f"model.backbone: timm is installed, but it cannot be imported: {error}; install versions of timm, torchvision "
        "and torch that fit each other, which are those of requirements.txt"
    )
    with pytest.raises(MelaError, match=f"^{re.escape(message)}$"):
        configure(parameters(), IMAGES, np.arange(6))


def test_a_classifier_that_is_not_finite_is_left_out_anyway(tmp_path: Path) -> None:
    save_file(spoiled("fc.weight", torch.nan), tmp_path / "x.safetensors")
    backbone = untrained()
    start_from(backbone.body, NAME, "x.safetensors", tmp_path)
    assert torch.equal(backbone.state_dict()[FIRST], state()["conv1.0.weight"])


def test_networks_that_give_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretrained, "_create", lambda name: nn.Conv2d(3, 4, 3))
    with pytest.raises(MelaError, match=r"expected a network that gives one vector per image, got \(4, 18, 18\) from"):
        build_backbone(**configure_any(), seed=0)


def configure_any() -> dict[str, Any]:
    return small(NAME, channels=3, size=20, width=1, drop_rate=0.0, drop_block=1, mean=[0.0] * 3, std=[1.0] * 3)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backbone": "conv4"}, "weights: expected none with the backbone conv4, got 'file.safetensors'"),
        ({"backbone": "conv4", "weights": "none", "train": "head"}, "train: expected all with the backbone conv4"),
        ({"backbone": "conv5"}, "expected conv4, conv4_rfs, resnet12 or timm:<name>, got 'conv5'"),
        ({"backbone": "timm:"}, "expected conv4, conv4_rfs, resnet12 or timm:<name>, got 'timm:'"),
        ({"weights": "../x.pth"}, "weights: '../x.pth' is no path below data/raw/weights"),
        ({"weights": "/x.pth"}, "weights: '/x.pth' is no path below data/raw/weights"),
    ],
)
def test_parameters_that_make_no_sense(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parameters(**changes)


def test_statistics_that_cannot_be_shared_are_refused(tmp_path: Path) -> None:
    """Among several processes each would normalise by its own part of a batch."""
    whole, _ = started(tmp_path, backbone="timm:test_efficientnet")
    with pytest.raises(MelaError, match=r"^runtime.processes: expected 1 with this backbone, .* BatchNormAct2d"):
        Compute(team=Team(rank=0, size=2)).forward_of(whole)


@pytest.mark.slow
def test_the_pipeline_with_somebody_elses_weights(project: Path) -> None:
    """`embed` is skipped: the initial embedding is the network as it comes."""
    few = {"evaluate.shots": [1], "evaluate.support_copies": 1, "pretrain.epochs": 1, "pretrain.milestones": []}
    few |= {"compare.oracle": False, "embed.epochs": 0, "report.map_classes": 2}
    start_from_weights(project, ON_WEIGHTS | few)
    run_stages()
    initial, final = (load_file(project / f"models/{name}.safetensors") for name in ("initial", "merged"))
    for name, value in state().items():
        if not name.startswith("fc."):
            assert torch.equal(initial[f"body.network.{name}"], value), name
            assert torch.equal(final[f"body.network.{name}"], value), name
    assert not torch.equal(final["body.head.weight"], initial["body.head.weight"])
    curve = store.read_csv(project / "results/embed/curve.csv", schemas.CURVE)
    assert curve.empty
    assert "Pre-training" in (project / "results/report.html").read_text(encoding="utf-8")
    features = feature_tables.read_features(project / "data/features.parquet")[1]
    assert features.shape[1] == plain().num_features
    tasks = pd.read_parquet(project / "data/manifest/test.parquet").query("task_id == 0")
    images = store.open_images(project / "data/images/images.npy")
    support = tasks[tasks["role"] == "support"]
    classifier = FewShotClassifier.load(project / "models/merged.safetensors")
    classifier.fit(images[support["image_id"]], support["local_label"])
    assert set(classifier.predict(images[support["image_id"]])) <= set(range(5))
    change(project / "params.yaml", {"model.train": "all"})
    run_stages("pretrain@merged")
    assert not torch.equal(load_file(project / "models/merged.safetensors")[FIRST], initial[FIRST])
