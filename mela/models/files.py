"""Store embeddings as safetensors, with the backbone's configuration in the header."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from mela.data.images import channel_statistics, require_images
from mela.errors import MelaError
from mela.io.tensors import read_trained, write_trained
from mela.models.backbones import Backbone, build_backbone
from mela.models.timm_backbones import PREFIX, manners
from mela.models.untrained import NOTHING
from mela.params import ModelParams

KIND = "mela.backbone/1"


def configure(model: ModelParams, images: npt.NDArray[np.uint8], image_ids: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return the arguments of `build_backbone` but for the seed.

    Parameters
    ----------
    model : ModelParams
        If its mean and std are null, they are those of a network of timm's configuration, or measured on the images
        with the given ids.
    images : uint8 (N, h, w, c)
    image_ids : int64 (n,)
    """
    if not len(image_ids):
        raise MelaError("train manifest: it has no task; add training tasks and rerun the stage manifest")
    require_images(images, image_ids)
    channels = images.shape[3]
    own = manners(model.backbone) if model.backbone.startswith(PREFIX) else None
    mean, std = model.mean, model.std
    if mean is None or std is None:
        mean, std = (own.mean, own.std) if own else channel_statistics(images, image_ids)
    needed, whose = (3, "the network") if own else (channels, "the images")
    if len(mean) != needed or len(std) != needed:
        raise MelaError(
            f"model.mean, model.std: expected {needed} numbers each, one per channel of {whose}, "
            f"got {len(mean)} and {len(std)}; correct them or set both to null"
        )
    special: dict[str, Any] = {}
    if own:
        special = {
            "side": model.input_size or own.side,
            "interpolation": own.interpolation,
            "head": model.train == "head",
        }
    elif model.residual_head:
        special = {"residual_head": True}
    return special | {
        "name": model.backbone,
        "channels": channels,
        "size": images.shape[1],
        "width": model.width,
        "drop_rate": model.drop_rate,
        "drop_block": model.drop_block,
        "mean": mean,
        "std": std,
    }


def save_model(path: Path, backbone: Backbone, configuration: dict[str, Any]) -> None:
    """Write a backbone; `configuration` holds the arguments of `build_backbone` but for the seed."""
    write_trained(path, backbone, {"kind": KIND, "configuration": configuration})


def is_trained(path: Path) -> bool:
    """Tell whether a file holds an embedding, and does not say that none was trained.

    Raises
    ------
    MelaError
        The file is missing or damaged.
    """
    return _read(path)[0].get("kind") != NOTHING


def load_model(path: Path, device: torch.device, images: npt.NDArray[np.uint8]) -> Backbone:
    """Return the backbone in evaluation mode, for images (N, h, w, c).

    Raises
    ------
    MelaError
        As `read_model`, or the model is for other images.
    """
    return read_model(path, device, images)[0]


def read_model(
    path: Path, device: torch.device, images: npt.NDArray[np.uint8] | None = None
) -> tuple[Backbone, dict[str, Any]]:
    """Return the backbone in evaluation mode, and the arguments of `build_backbone` but for the seed.

    Parameters
    ----------
    path : Path
    device : torch.device
    images : uint8 (N, h, w, c), optional
        Images that the model has to fit.

    Raises
    ------
    MelaError
        The file is missing, damaged, or holds something else (every tensor must fit), or is for other images.
    """
    header, tensors = read_file(path)
    if header.get("kind") != KIND:
        raise MelaError(f"{path}: expected a model of kind {KIND}, found {header.get('kind')}; train it again")
    return loaded(path, header, tensors, device, images)


def loaded(
    path: Path,
    header: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    device: torch.device,
    images: npt.NDArray[np.uint8] | None,
) -> tuple[Backbone, dict[str, Any]]:
    """Return what `read_model` does, given the header and tensors of such a file."""
    backbone, configuration = build_configured(path, header, images)
    load_tensors(path, backbone, tensors)
    return backbone.to(device).eval(), configuration


def read_file(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the object in a trained file's header and the tensors; see `mela.io.tensors.read_trained`.

    Raises
    ------
    MelaError
        The file is missing, damaged, or says that nothing was trained.
    """
    header, tensors = _read(path)
    if header.get("kind") == NOTHING:
        raise MelaError(
            f"{path}: expected an embedding, got none, since nothing was trained on these labels; set "
            f"compare.{path.stem} to true in the parameters and run the pipeline again, or name another model"
        )
    return header, tensors


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if not path.is_file():
        raise MelaError(f"{path}: no such file; run `dvc repro`, or the stage that makes it, first")
    return read_trained(path)


def build_configured(
    path: Path, header: Mapping[str, Any], images: npt.NDArray[np.uint8] | None
) -> tuple[Backbone, dict[str, Any]]:
    """Build an untrained backbone by the configuration in a file's header; return both; see `read_model`."""
    configuration = header.get("configuration", {})
    try:
        shape = (configuration["size"], configuration["size"], configuration["channels"])
        backbone = build_backbone(**configuration, seed=0)
    except MelaError as error:
        # about a network of timm, or timm itself, which is not the fault of the file
        raise MelaError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise MelaError(f"{path}: expected a backbone's configuration, got {error}; train it again") from None
    if images is None:
        _require_usual(path, configuration)
    elif images.shape[1:] != shape:
        raise MelaError(
            f"{path}: expected images of {images.shape[1:]}, the packed ones, got a model for {shape}; train it again"
        )
    return backbone, configuration


def load_tensors(path: Path, module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load a file's tensors into a module; every one must fit.

    Raises
    ------
    MelaError
        A tensor does not fit.
    """
    try:
        module.load_state_dict(tensors, strict=True)
    except RuntimeError as error:
        what = " ".join(str(error).split())
        raise MelaError(f"{path}: its weights do not fit its configuration ({what}); train it again") from None


def _require_usual(path: Path, configuration: dict[str, Any]) -> None:
    """Raise MelaError unless a model, which may come from anywhere, is for images that the stage ``images`` packs."""
    size, channels = configuration["size"], configuration["channels"]
    if not (isinstance(size, int) and 16 <= size <= 512 and isinstance(channels, int) and channels in (1, 3)):
        raise MelaError(
            f"{path}: expected a model for images of 16 to 512 pixels and 1 or 3 channels, got size={size!r} and "
            f"channels={channels!r}; train it again"
        )
