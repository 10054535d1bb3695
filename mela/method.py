"""Few-shot methods by their names, and what each may see."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import mela.methods
from mela.errors import MelaError

Sees = Literal["tasks", "labels", "images"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """What a module of `mela.methods` says of itself, as ``METHOD``.

    Attributes
    ----------
    title : str
        As tables call it.
    source : str
        Authors and year.
    sees : {"tasks", "labels", "images"}
        What it learns from: tasks with local labels, images with global labels, or images alone.
    learner : callable
        Makes what learns of an embedding and, if it learns from labels or from images alone, of their number: a
        `Learner`, `LabelLearner` or `ImageLearner`.
    """

    title: str
    source: str
    sees: Sees
    learner: Callable[..., Any]


def method_names() -> list[str]:
    """Of all methods, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(mela.methods.__path__))


def find_method(name: str) -> Method:
    """The method of a name.

    Raises
    ------
    MelaError
        There is none.
    """
    if name not in method_names():
        raise MelaError(f"method {name!r}: expected one of {', '.join(method_names())}")
    method: Method = import_module(f"mela.methods.{name}").METHOD
    return method
