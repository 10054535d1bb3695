"""Store what a method has learned as safetensors, with the method and the backbone's configuration in the header."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mela.errors import MelaError
from mela.io.tensors import write_trained
from mela.learners.base import ImageLearner, LabelLearner, Learner
from mela.methods import find_method, method_names
from mela.models.backbones import Backbone
from mela.models.files import KIND as EMBEDDING
from mela.models.files import build_configured, load_tensors, loaded, read_file

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


@dataclass(frozen=True, kw_only=True)
class Learned:
    """Hold an embedding from a file, alone or with what a method has learned beside it.

    Attributes
    ----------
    backbone : Backbone
        In evaluation mode.
    configuration : dict
        The arguments of `build_backbone` but for the seed.
    method : str or None
        Name of the method; None for an embedding alone.
    learner : Learner, LabelLearner, ImageLearner or None
        Learner with the backbone, in evaluation mode; None for an embedding alone.
    """

    backbone: Backbone
    configuration: dict[str, Any]
    method: str | None = None
    learner: AnyLearner | None = None


def load_learned(path: Path, device: torch.device, images: npt.NDArray[np.uint8] | None = None) -> Learned:
    """Read what `save_learner` or `mela.models.files.save_model` wrote.

    Parameters
    ----------
    path : Path
    device : torch.device
    images : uint8 (N, h, w, c), optional
        Images that the model has to fit.

    Raises
    ------
    MelaError
        The file is missing or damaged, its tensors do not fit, or it is for other images.
    """
    header, tensors = read_file(path)
    kind, name = header.get("kind"), header.get("method")
    if kind == EMBEDDING:
        backbone, configuration = loaded(path, header, tensors, device, images)
        return Learned(backbone=backbone, configuration=configuration)
    if kind != KIND:
        raise MelaError(f"{path}: expected a model of kind {EMBEDDING} or {KIND}, found {kind}; train it again")
    if name not in method_names():
        raise MelaError(f"{path}: expected a method of this MeLa, found {name!r}; install the one that has trained it")
    backbone, configuration = build_configured(path, header, images)
    try:
        counts = [header[what] for what in ("labels", "images") if what in header]
        learner: AnyLearner = find_method(name).build(backbone, *counts)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise MelaError(f"{path}: expected a learner, got {' '.join(str(error).split())}; train it again") from None
    load_tensors(path, learner, tensors)
    learner.to(device).eval()
    return Learned(backbone=learner.backbone, configuration=configuration, method=name, learner=learner)
