"""What a method has learned, on disk: safetensors, with the method and the backbone's configuration in the header."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save

from mela.atomic import replacing
from mela.backbones import build_backbone
from mela.errors import MelaError, raise_if_machine
from mela.learner import Learner
from mela.method import find_method
from mela.tensors import read_tensors

KIND = "mela.learner/1"


def save_learner(path: Path, learner: Learner, method: str, configuration: dict[str, Any]) -> None:
    """Write a learner; `configuration` holds the arguments of `build_backbone` but for the seed."""
    tensors = {name: value.detach().cpu().contiguous() for name, value in learner.state_dict().items()}
    about = {"kind": KIND, "method": method, "configuration": configuration}
    with replacing(path) as temporary:
        temporary.write_bytes(save(tensors, metadata={"mela": json.dumps(about, sort_keys=True)}))


def load_learner(path: Path, device: torch.device) -> Learner | None:
    """The learner in evaluation mode; None if the file holds something else, such as an embedding alone.

    Raises
    ------
    MelaError
        The file is missing or damaged, or its tensors do not fit.
    """
    if not path.is_file():
        raise MelaError(f"{path}: no such file; run the stage that makes it first")
    try:
        header, tensors = read_tensors(path)
    except (SafetensorError, OSError, ValueError, MemoryError) as error:
        raise_if_machine(error, path)
        raise MelaError(f"{path}: expected a safetensors file, got {error}; train it again") from None
    if header.get("kind") != KIND:
        return None
    learner = find_method(header["method"]).learner(build_backbone(**header["configuration"], seed=0))
    try:
        learner.load_state_dict(tensors, strict=True)
    except RuntimeError as error:
        raise MelaError(f"{path}: tensors do not fit its configuration: {' '.join(str(error).split())}") from None
    return learner.to(device).eval()
