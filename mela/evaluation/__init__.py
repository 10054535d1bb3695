"""Accuracy on new tasks, the heads that are fitted to them, and scores of labels."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.evaluation.accuracy import evaluate_model, evaluate_tasks
    from mela.evaluation.heads import HEADS
    from mela.evaluation.intervals import Interval
    from mela.evaluation.label_scores import majority_accuracy
    from mela.evaluation.logistic import fit_heads

__all__ = ["HEADS", "Interval", "evaluate_model", "evaluate_tasks", "fit_heads", "majority_accuracy"]

# the module of each
_HOMES = {
    "HEADS": "heads",
    "Interval": "intervals",
    "evaluate_model": "accuracy",
    "evaluate_tasks": "accuracy",
    "fit_heads": "logistic",
    "majority_accuracy": "label_scores",
}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
