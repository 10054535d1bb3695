"""Models on disk, and what is asked of them."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from mela import FewShotClassifier
from mela.data.episodes import Episode
from mela.methods import find_method
from mela.models.backbones import build_backbone
from mela.models.files import save_model
from mela.training.learner_files import save_learner
from tests.helpers.embedding import configuration


def write_model(path: Path, *, channels: int = 3, size: int = 16, seed: int = 0) -> Path:
    """An untrained one, with statistics of some images."""
    made_by = configuration(channels=channels, size=size, width=8, drop_rate=0.0, drop_block=1, std=[0.3] * channels)
    backbone = build_backbone(**made_by, seed=seed)
    with torch.no_grad():
        backbone.train()(torch.rand(64, channels, size, size, generator=torch.Generator().manual_seed(seed)))
    save_model(path, backbone, made_by)
    return path


def write_rule(path: Path, name: str, made_by: dict[str, Any] | None = None, batch: torch.Tensor | None = None) -> Any:
    """An untrained method, which is returned too, with statistics of some images."""
    method, made_by = find_method(name), made_by or configuration(channels=3, size=16, width=8, std=[0.3] * 3)
    batch = torch.rand(64, 3, 16, 16, generator=torch.Generator().manual_seed(0)) if batch is None else batch
    torch.manual_seed(0)
    learner = method.build(build_backbone(**made_by, seed=0), *([] if method.sees == "tasks" else [7]))
    with torch.no_grad():
        learner.backbone.train()(batch)
        if name == "r2d2":
            learner.log_lambda.zero_()  # features of so narrow a network are small beside what it starts from
    save_learner(path, learner, name, made_by)
    return learner.eval()


def some_images(*shape: int, seed: int = 0) -> npt.NDArray[np.uint8]:
    """Noise in coarse squares, which differs between images after a change of size."""
    coarse = np.random.default_rng(seed).integers(256, size=(shape[0], 4, 4, *shape[3:])).astype(np.uint8)
    return coarse.repeat(-(-shape[1] // 4), axis=1).repeat(-(-shape[2] // 4), axis=2)[:, : shape[1], : shape[2]]


def accuracy(classifier: FewShotClassifier, images: npt.NDArray[np.uint8], task: Episode, shots: int) -> float:
    rows = [np.flatnonzero(task.is_support & (task.labels == label))[:shots] for label in np.unique(task.labels)]
    support = np.sort(np.concatenate(rows))
    classifier.fit(images[task.image_ids[support]], task.labels[support])
    predicted = classifier.predict(images[task.image_ids[~task.is_support]])
    return float(100 * (predicted == task.labels[~task.is_support]).mean())


def save(path: str, image: Any) -> Path:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(image).save(path)
    return Path(path)
