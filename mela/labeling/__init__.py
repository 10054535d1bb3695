"""How global labels are inferred from independently labelled tasks (Algorithm 2, and merging)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.labeling.image_labels import label_images
    from mela.labeling.labeler import LearnLabeler
    from mela.labeling.labeler_files import load_labeler, save_labeler
    from mela.labeling.merging import merge_classes
    from mela.labeling.newcomers import place_labels
    from mela.labeling.pruning import prune_clusters
    from mela.labeling.task_classes import TaskSamples, class_means, group_samples, manifest_samples

__all__ = [
    "LearnLabeler",
    "TaskSamples",
    "class_means",
    "group_samples",
    "label_images",
    "load_labeler",
    "manifest_samples",
    "merge_classes",
    "place_labels",
    "prune_clusters",
    "save_labeler",
]

# the module of each
_HOMES = {
    "LearnLabeler": "labeler",
    "TaskSamples": "task_classes",
    "class_means": "task_classes",
    "group_samples": "task_classes",
    "label_images": "image_labels",
    "load_labeler": "labeler_files",
    "manifest_samples": "task_classes",
    "merge_classes": "merging",
    "place_labels": "newcomers",
    "prune_clusters": "pruning",
    "save_labeler": "labeler_files",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
