"""Few-shot methods by their names, and what each may see."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import mela.methods
from mela.errors import MelaError
from mela.image_learner import ImageLearner
from mela.label_learner import LabelLearner
from mela.learner import Learner

Sees = Literal["tasks", "labels", "images"]
# from what the class of a method is derived, by what it sees
BASES: dict[str, type] = {"tasks": Learner, "labels": LabelLearner, "images": ImageLearner}


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
    learner : type
        Derived from `Learner`, `LabelLearner` or `ImageLearner`: made of an embedding and, if it learns from labels or
        from images alone, of their number.

    Raises
    ------
    MelaError
        It sees nothing that there is, or its class is derived from another one.
    """

    title: str
    source: str
    sees: Sees
    learner: Callable[..., Any]

    def __post_init__(self) -> None:
        """Check what it sees and what learns."""
        base = BASES.get(self.sees)
        if base is None:
            raise MelaError(
                f"method {self.title!r}: sees: expected one of {', '.join(BASES)}, got {self.sees!r}; correct it"
            )
        if not isinstance(self.learner, type) or not issubclass(self.learner, base):
            name = getattr(self.learner, "__name__", self.learner)
            raise MelaError(
                f"method {self.title!r}: learner: expected a class derived from {base.__name__}, since it sees "
                f"{self.sees}, got {name}; correct either"
            )


def method_names() -> list[str]:
    """Of all methods, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules(mela.methods.__path__))


def find_method(name: str) -> Method:
    """The method of a name.

    Raises
    ------
    MelaError
        There is none, or its file does not say what it is.
    """
    if name not in method_names():
        raise MelaError(f"method {name!r}: expected one of {', '.join(method_names())}")
    method = getattr(import_module(f"mela.methods.{name}"), "METHOD", None)
    if not isinstance(method, Method):
        raise MelaError(f"mela/methods/{name}.py: expected METHOD = Method(...), got {method}; add it")
    return method
