"""What a method is made of: base classes, the checks of what it makes, and parts that several methods share."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mela.learners.base import ImageLearner, LabelLearner, Learner, Student
    from mela.learners.method import Method

__all__ = ["ImageLearner", "LabelLearner", "Learner", "Method", "Student"]

# the module of each
_HOMES = {"ImageLearner": "base", "LabelLearner": "base", "Learner": "base", "Method": "method", "Student": "base"}


def __getattr__(name: str) -> Any:
    """Import what `__all__` names when it is asked for, since much of it takes long to import."""
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
