"""Trainings, from the loop over epochs to checkpoints and the files of trained methods."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.training.embeddings import pretrain, train_embedding
    from mela.training.learner_files import load_learned, save_learner
    from mela.training.loop import Epoch, Schedule, Training, fit
    from mela.training.on_images import train_on_images, train_on_labels, train_without_labels
    from mela.training.on_tasks import train_on_tasks
    from mela.training.proposition1 import both_losses

__all__ = [
    "Epoch",
    "Schedule",
    "Training",
    "both_losses",
    "fit",
    "load_learned",
    "pretrain",
    "save_learner",
    "train_embedding",
    "train_on_images",
    "train_on_labels",
    "train_on_tasks",
    "train_without_labels",
]

# the module of each
_HOMES = {
    "Epoch": "loop",
    "Schedule": "loop",
    "Training": "loop",
    "both_losses": "proposition1",
    "fit": "loop",
    "load_learned": "learner_files",
    "pretrain": "embeddings",
    "save_learner": "learner_files",
    "train_embedding": "embeddings",
    "train_on_images": "on_images",
    "train_on_labels": "on_images",
    "train_on_tasks": "on_tasks",
    "train_without_labels": "on_images",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
