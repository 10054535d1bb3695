"""Tiny images, tasks and networks, on which methods train in seconds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from mela.data.episodes import Episode, Episodes
from mela.models.backbones import Backbone, build_backbone
from mela.params import ModelParams
from mela.training.schedule import Schedule

N_CLASSES, PER_CLASS = 6, 12


def patterns() -> npt.NDArray[np.uint8]:
    """Image i shows the coarse 4 x 4 pattern of class i // PER_CLASS at random brightness, with noise."""
    rng = np.random.default_rng(0)
    coarse = rng.integers(2, size=(N_CLASSES, 4, 4)).repeat(4, axis=1).repeat(4, axis=2)
    shown = coarse.repeat(PER_CLASS, axis=0) * rng.uniform(60, 160, size=(N_CLASSES * PER_CLASS, 1, 1))
    noisy = 40 + shown + rng.normal(scale=25, size=shown.shape)
    return noisy.clip(0, 255).astype(np.uint8)[..., None]


IMAGES = patterns()


def episodes(shapes: Sequence[tuple[Sequence[int], int]]) -> Episodes:
    """A task per (support images of each class, query images of every class)."""
    rng = np.random.default_rng(1)
    rows = []
    for task, (shots, queries) in enumerate(shapes):
        for local, name in enumerate(rng.choice(N_CLASSES, len(shots), replace=False)):
            images = name * PER_CLASS + rng.permutation(PER_CLASS)[: shots[local] + queries]
            rows += [(task, i, local, "support" if k < shots[local] else "query") for k, i in enumerate(images)]
    return Episodes(pd.DataFrame(rows, columns=["task_id", "image_id", "local_label", "role"]))


def configuration(name: str = "conv4", *, channels: int = 1, **changes: Any) -> dict[str, Any]:
    """The arguments of a small network, but for its seed."""
    found = {"name": name, "channels": channels, "size": 16, "width": 4, "drop_rate": 0.1, "drop_block": 2}
    return found | {"mean": [0.5] * channels, "std": [0.25] * channels} | changes


def model_parameters(**changes: Any) -> ModelParams:
    """The block `model` of a small network."""
    values = {"backbone": "resnet12", "weights": "none", "train": "all", "width": 2, "drop_rate": 0.1, "drop_block": 2}
    return ModelParams(**values | {"mean": None, "std": None, "precision": "auto"} | changes)


def backbone(name: str = "conv4", *, seed: int = 0, **changes: Any) -> Backbone:
    return build_backbone(**configuration(name, **changes), seed=seed)


def schedule(epochs: int, learning_rate: float = 0.05) -> Schedule:
    return Schedule(
        epochs=epochs, learning_rate=learning_rate, momentum=0.9, weight_decay=5e-4, milestones=[], decay=0.1
    )


def batch_of(images: npt.NDArray[np.uint8]) -> Tensor:
    """What networks take in: channels first, from 0 to 1."""
    return torch.from_numpy(images).permute(0, 3, 1, 2) / 255


def state_of(network: torch.nn.Module) -> dict[str, Tensor]:
    """A copy of what a network has learned, that training it does not change."""
    return {name: value.clone() for name, value in network.state_dict().items()}


def near_their_class(features: npt.NDArray[np.float32]) -> float:
    """Share of images, but for the first two of each class, that are nearest to the mean of those two."""
    classes, place = np.divmod(np.arange(len(features)), PER_CLASS)
    means = features[place < 2].reshape(N_CLASSES, 2, -1).mean(1)
    nearest = np.square(features[place >= 2][:, None] - means).sum(2).argmin(1)
    return float((nearest == classes[place >= 2]).mean())


def shown(task: Episode) -> Tensor:
    return batch_of(IMAGES[task.image_ids])


WAYS, SHOTS, QUERIES = 4, 3, 5


def features(tasks: int = 3, m: int = 6, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Support features, labels, query features and labels of some tasks, whose classes overlap."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(tasks, WAYS, m, generator=generator, dtype=dtype)

    def drawn(count: int) -> tuple[Tensor, Tensor]:
        labels = torch.stack([torch.randperm(WAYS * count, generator=generator) % WAYS for _ in range(tasks)])
        noise = torch.randn(tasks, WAYS * count, m, generator=generator, dtype=dtype)
        return centres[torch.arange(tasks)[:, None], labels] + 0.7 * noise, labels

    return *drawn(SHOTS), *drawn(QUERIES)
