"""What a method has learned, on disk: safetensors, with the method and the backbone's configuration in the header."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mela.backbones import Backbone, build_backbone
from mela.errors import MelaError
from mela.image_learner import ImageLearner
from mela.label_learner import LabelLearner
from mela.learner import Learner
from mela.method import find_method
from mela.models import load_model
from mela.tensors import read_trained, write_trained

KIND = "mela.learner/1"


AnyLearner = Learner | LabelLearner | ImageLearner


def save_learner(path: Path, learner: AnyLearner, method: str, configuration: dict[str, Any]) -> None:
    """Write a learner; `configuration` holds the arguments of `build_backbone` but for the seed."""
    about: dict[str, Any] = {"kind": KIND, "method": method, "configuration": configuration}
    if isinstance(learner, LabelLearner):
        about["labels"] = learner.classifier.out_features
    if isinstance(learner, ImageLearner):
        about["images"] = learner.n_images
    write_trained(path, learner, about)


def load_learner(path: Path, device: torch.device) -> AnyLearner | None:
    """The learner in evaluation mode; None if the file holds something else, such as an embedding alone.

    Raises
    ------
    MelaError
        The file is missing or damaged, or its tensors do not fit.
    """
    if not path.is_file():
        raise MelaError(f"{path}: no such file; run the stage that makes it first")
    header, tensors = read_trained(path)
    if header.get("kind") != KIND:
        return None
    try:
        counts = [header[name] for name in ("labels", "images") if name in header]
        learner = find_method(header["method"]).learner(build_backbone(**header["configuration"], seed=0), *counts)
        learner.load_state_dict(tensors, strict=True)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise MelaError(f"{path}: expected a learner, got {' '.join(str(error).split())}; train it again") from None
    found: AnyLearner = learner.to(device).eval()
    return found


def embedding(path: Path, device: torch.device, images: npt.NDArray[np.uint8]) -> Backbone:
    """The embedding that a file holds, alone or with what a method learned beside it, for images (N, h, w, c)."""
    learner = load_learner(path, device)
    return load_model(path, device, images) if learner is None else learner.backbone
