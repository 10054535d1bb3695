"""Use backbones of the package timm, with weights that somebody else has trained."""

import difflib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mela.errors import MelaError, one_line, raise_if_machine

PREFIX = "timm:"
NONE, DOWNLOAD = "none", "timm"


@dataclass(frozen=True, kw_only=True)
class Manners:
    """Describe how a network takes its images, by its own configuration.

    Attributes
    ----------
    side : int
        Pixels.
    interpolation : str
        Method of resizing to that side.
    mean, std : list of float
        Mean and deviation of its three channels, in [0, 1].
    """

    side: int
    interpolation: str
    mean: list[float]
    std: list[float]


class Pretrained(nn.Module):
    """Wrap a network of timm as the body of a backbone: images of any size to vectors.

    Parameters
    ----------
    network : nn.Module
        Images (n, 3, side, side) to features (n, m).
    side : int
        Side to which images are resized.
    interpolation : str
        Method of resizing, as `torch.nn.functional.interpolate` names it.
    head : int or None
        With m, a linear map of the features, at first the identity, is all that learns: the network's weights stay,
        and so do its running statistics.
    """

    def __init__(self, network: nn.Module, side: int, interpolation: str, head: int | None) -> None:
        super().__init__()
        self.network = network
        self.side = side
        self.interpolation = interpolation
        self.head = nn.Identity() if head is None else nn.Linear(head, head, bias=False)
        self.frozen = head is not None
        if head is not None:
            nn.init.eye_(cast(Tensor, self.head.weight))
            network.requires_grad_(False)

    def train(self, mode: bool = True) -> "Pretrained":
        """Set the mode as any module does, but keep a network that does not learn in evaluation mode."""
        super().train(mode)
        if self.frozen:
            self.network.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Return the features (n, m) of normalised images (n, 3, h, w)."""
        if images.shape[-1] != self.side:
            smaller = images.shape[-1] > self.side
            images = F.interpolate(images, size=(self.side, self.side), mode=self.interpolation, antialias=smaller)
        features: Tensor = self.head(self.network(images))
        return features


@cache
def manners(name: str) -> Manners:
    """Return how the network `timm:<architecture>` takes its images.

    Raises
    ------
    MelaError
        timm lacks the network or is not installed, or the network does not take square images of three channels.
    """
    found = _timm().data.resolve_model_data_config(_create(name))
    channels, height, width = found["input_size"]
    if channels != 3 or height != width:
        raise MelaError(
            f"model.backbone: expected a network for square images of 3 channels, got {name} for "
            f"{height} x {width} x {channels}; choose another"
        )
    interpolation = "bilinear" if found["interpolation"] == "bilinear" else "bicubic"
    return Manners(side=height, interpolation=interpolation, mean=[*found["mean"]], std=[*found["std"]])


def pretrained_body(name: str, side: int, interpolation: str, *, head: bool) -> tuple[Pretrained, int]:
    """Return the network `timm:<architecture>` with random weights as a body, and the length m of its features.

    A network with positions of its own, such as a vision transformer, interpolates them if the side is not its own.

    Raises
    ------
    MelaError
        As `manners`, or the network takes no images of this side, or gives something else than a vector.
    """
    network = _create(name)
    try:
        features = _tried(network, side)
    # so networks say that they take images of one side alone, or that these are too small
    except (AssertionError, RuntimeError, ValueError) as error:
        network, features = _with_moving_positions(name, side, error)
    if features.ndim != 2:
        raise MelaError(
            f"model.backbone: expected a network that gives one vector per image, got {tuple(features.shape[1:])} from "
            f"{name}; choose another"
        )
    dimensions = features.shape[1]
    return Pretrained(network, side, interpolation, dimensions if head else None), dimensions


def _tried(network: nn.Module, side: int) -> Tensor:
    """Return the features of a blank image."""
    was = network.training
    with torch.no_grad():
        features: Tensor = network.eval()(torch.zeros(1, 3, side, side))
    network.train(was)
    return features


def _with_moving_positions(name: str, side: int, error: Exception) -> tuple[nn.Module, Tensor]:
    """Return a network that interpolates its positions for images of another side, and its features."""
    try:
        network = _create(name, dynamic_img_size=True)
        return network, _tried(network, side)
    # TypeError: a network that has no such option
    except (AssertionError, RuntimeError, TypeError, ValueError) as again:
        reason = again if isinstance(again, AssertionError) else error
        raise MelaError(
            f"model.input_size: expected a side that {name} takes, got {side} ({one_line(reason)}); remove the key, "
            "which leaves the network its own side, or choose another network"
        ) from None


def start_from(body: nn.Module, name: str, weights: str, folder: Path) -> None:
    """Load the weights with which training starts into the body of a backbone.

    Parameters
    ----------
    body : nn.Module
        A `Pretrained`, unless `weights` is "none", which leaves it as it is.
    name : str
        `timm:<architecture>`.
    weights : str
        "none"; "timm" for those that timm downloads; or a file (.safetensors, .pth...) below `folder`.
    folder : Path

    Raises
    ------
    MelaError
        The weights cannot be obtained or read, or do not fit the network, apart from those of its classifier.
    """
    if weights == NONE:
        return
    assert isinstance(body, Pretrained), "a backbone of timm"
    network = body.network
    if weights == DOWNLOAD:
        network.load_state_dict(_downloaded(name, folder))
        return
    path = folder / weights
    if not path.is_file():
        raise MelaError(f"model.weights: expected the file {path}, found none; put it there, or correct the name")
    state = _read(path)
    classifier = _classifier(name)
    own = network.state_dict()
    extra = [key for key in state if key not in own and not key.startswith(classifier)]
    problems = [f"{key} is missing" for key in own if key not in state]
    problems += [f"{key} is not known" for key in extra]
    problems += [
        f"{key} has shape {tuple(state[key].shape)} in place of {tuple(value.shape)}"
        for key, value in own.items()
        if key in state and state[key].shape != value.shape
    ]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise MelaError(
            f"{path}: expected weights of {name}, got others: {problems[0]}{more}; correct model.backbone or the file"
        )
    for key in own:
        if state[key].is_floating_point() and not state[key].isfinite().all():
            raise MelaError(
                f"{path}: expected finite weights, got NaN or infinity in {key}; no training can mend them: name "
                "another file under model.weights"
            )
    network.load_state_dict({key: state[key] for key in own})


def _timm() -> ModuleType:
    try:
        import timm
        import timm.data
        import timm.models
    except ModuleNotFoundError as error:
        if error.name != "timm":
            raise _broken(error) from error
        raise MelaError(
            "model.backbone: expected the package timm, which has the networks timm:<name>, found none; install it by "
            "`make setup` in a clone of this project, or elsewhere by `pip install timm`"
        ) from None
    # RuntimeError: torchvision was made for another version of PyTorch
    except (ImportError, RuntimeError) as error:
        raise _broken(error) from error
    return timm


def _broken(error: Exception) -> MelaError:
    """Return the message if timm is installed, but something that it needs is missing or does not fit."""
    return MelaError(
        f"model.backbone: timm is installed, but it cannot be imported: {one_line(error)}; install versions of timm, "
        "torchvision and torch that fit each other, which are those of requirements.txt"
    )


def _create(name: str, **arguments: Any) -> nn.Module:
    timm = _timm()
    architecture = name.removeprefix(PREFIX)
    known = timm.list_models()
    if architecture.partition(".")[0] not in known:
        like = difflib.get_close_matches(architecture, known, n=3)
        hint = f"such as {', '.join(like)}" if like else "see timm.list_models()"
        raise MelaError(f"model.backbone: expected a network of timm {timm.__version__}, {hint}, got {architecture!r}")
    try:
        network: nn.Module = timm.create_model(architecture, num_classes=0, **arguments)
    except RuntimeError as error:
        if arguments:
            raise
        raise MelaError(f"model.backbone: expected a network of timm, got {one_line(error)}; correct it") from None
    return network


def _classifier(name: str) -> tuple[str, ...]:
    """Return the prefixes of the names of a network's weights that its features do not need."""
    names = _timm().models.get_pretrained_cfg(name.removeprefix(PREFIX))
    found = getattr(names, "classifier", None) or ()
    return tuple(f"{one}." for one in ([found] if isinstance(found, str) else found))


def _downloaded(name: str, folder: Path) -> dict[str, Tensor]:
    try:
        return _create(name, pretrained=True).state_dict()
    except MelaError:
        raise
    # of the network, of the hub, or that there are none
    except (OSError, RuntimeError, ValueError) as error:
        raise MelaError(
            f"model.weights: expected timm to download those of {name}, got {one_line(error)}; "
            f"put a file into {folder} and name it under model.weights"
        ) from None


def _read(path: Path) -> dict[str, Tensor]:
    timm = _timm()
    try:
        state = timm.models.load_state_dict(str(path), weights_only=True)
    # a damaged file can raise almost anything
    except Exception as error:
        raise_if_machine(error, path)
        raise MelaError(f"{path}: expected a file of weights, got {one_line(error)}; fetch it again") from None
    if not isinstance(state, dict) or not all(isinstance(value, Tensor) for value in state.values()):
        raise MelaError(f"{path}: expected tensors by their names, got something else; save the network's state_dict()")
    return state
