"""A project whose training starts from somebody else's weights, which are made here."""

from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.helpers.project import change

NAME = "timm:test_resnet"
# few tasks and a head on a network that does not learn
ON_WEIGHTS = {
    "data.images_per_class": 8,
    "tasks.train": 6,
    "tasks.val": 2,
    "tasks.test": 3,
    "tasks.shots": 1,
    "tasks.queries": 2,
    "embed.tasks_per_epoch": None,
    "pretrain.learning_rate": 0.001,
    "compare.pruned": False,
    "model.backbone": NAME,
    "model.weights": "own.safetensors",
    "model.train": "head",
}


@cache
def weights(name: str = "test_resnet") -> dict[str, Tensor]:
    """Weights of a network with a classifier, as somebody would have trained it."""
    import timm

    with torch.random.fork_rng():
        torch.manual_seed(5)
        network = timm.create_model(name, num_classes=7)
        network.train()(torch.rand(2, 3, 160, 160))
    return dict(network.state_dict())


def start_from_weights(project: Path, settings: dict[str, Any]) -> None:
    """Put the weights where a project looks for them, and change its parameters."""
    folder = project / "data/raw/weights"
    folder.mkdir(parents=True)
    save_file(weights(), folder / "own.safetensors")
    change(project / "params.yaml", settings)
