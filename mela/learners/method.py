"""Describe a method, and check that it fits what it learns from."""

import math
import traceback
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, Literal

from mela.errors import MelaError, one_line, told
from mela.learners.base import ImageLearner, LabelLearner, Learner
from mela.models.backbones import Backbone

Sees = Literal["tasks", "labels", "images"]
# from what the class of a method is derived, by what it sees
BASES: dict[str, type] = {"tasks": Learner, "labels": LabelLearner, "images": ImageLearner}
# what a class is to have of its own
OPEN: dict[type, tuple[str, ...]] = {Learner: ("logits",), LabelLearner: (), ImageLearner: ("forward", "loss")}
METHODS = "mela/methods/*.py"
OPTIMIZERS = ("sgd", "adam")
# how many arguments these take, beside self
ARGUMENTS = {
    Learner: {"forward": 1, "logits": 4, "losses": 4},
    LabelLearner: {"forward": 1, "loss": 4},
    ImageLearner: {"forward": 1, "loss": 4},
}
# with which a method is trained
SETTINGS = ("optimizer", "learning_rate")


@dataclass(frozen=True, kw_only=True)
class Method:
    """Describe a method; each module of `mela.methods` defines one as ``METHOD``.

    Attributes
    ----------
    title : str
        Name in tables.
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
        It has no name, `sees` is unknown, or its class does not fit what it sees.
    """

    title: str
    source: str
    sees: Sees
    learner: type[Any]

    def __post_init__(self) -> None:
        """Check the description and the learner's class."""
        for key in ("title", "source"):
            text = getattr(self, key)
            if not isinstance(text, str) or not text.strip() or set(text) & set("|\n"):
                raise MelaError(f"METHOD: {key}: expected a line of text without |, got {text!r}; correct it")
        base = BASES.get(self.sees) if isinstance(self.sees, str) else None
        if base is None:
            raise MelaError(f"METHOD: sees: expected one of {', '.join(BASES)}, got {self.sees!r}; correct it")
        if not isinstance(self.learner, type) or not issubclass(self.learner, base):
            name = getattr(self.learner, "__name__", self.learner)
            raise MelaError(
                f"METHOD: learner: expected a class derived from {base.__name__}, since it sees {self.sees}, got "
                f"{name}; correct either"
            )
        _require_complete(self.learner, base)

    def build(self, backbone: Backbone, *counts: int) -> Any:
        """Return an untrained learner.

        Parameters
        ----------
        backbone : Backbone
        *counts : int
            Number of labels or images, if it learns from labels or from images alone.

        Raises
        ------
        MelaError
            Its class cannot be built from these, or does not keep the embedding.
        """
        name = self.learner.__name__
        try:
            learner = self.learner(backbone, *counts)
        except Exception as error:
            if told(error) is not None:
                raise
            where = place_of(error, f"{name}.__init__")
            made_of = "an embedding" + "".join(f" and {count}" for count in counts)
            raise MelaError(f"{where}: expected to make {name} of {made_of}, got {said(error)}; correct it") from error
        if not isinstance(getattr(learner, "backbone", None), Backbone):
            raise MelaError(
                f"{name}.__init__: expected the embedding as its backbone, got none; begin with super().__init__"
            )
        return learner


def _require_complete(learner: type[Any], base: type) -> None:
    """Raise MelaError unless a class defines what its base leaves open, with valid training settings."""
    for part in OPEN[base]:
        if getattr(learner, part) is getattr(base, part):
            raise MelaError(f"{learner.__name__}: expected {part} of its own, got none; write it, see {base.__name__}")
    for part, count in ARGUMENTS[base].items():
        try:
            signature(getattr(learner, part)).bind(*range(count + 1))
        except TypeError as error:
            asked = ", ".join(signature(getattr(base, part)).parameters)
            raise MelaError(
                f"{learner.__name__}.{part}: expected to be called with {asked}, got {error}; correct it"
            ) from None
    if base is LabelLearner:
        for part in SETTINGS:
            if hasattr(learner, part):
                raise MelaError(
                    f"{learner.__name__}.{part}: expected none, since all that learns from labels is trained as the "
                    f"block pretrain says, got {getattr(learner, part)!r}; remove it"
                )
        return
    if learner.optimizer not in OPTIMIZERS:
        raise MelaError(
            f"{learner.__name__}.optimizer: expected {' or '.join(OPTIMIZERS)} (adam is AdamW), got "
            f"{learner.optimizer!r}; correct it"
        )
    for part in ("learning_rate", "initial_scale"):
        value = getattr(learner, part, None)
        if value is None and part == "initial_scale":
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise MelaError(f"{learner.__name__}.{part}: expected a number above 0, got {value!r}; correct it")


def file_of(error: Exception, otherwise: str) -> tuple[str, int | None]:
    """Return the file and line of the method from which an error came, or `otherwise` if from no method's file."""
    if isinstance(error, SyntaxError) and error.filename:
        return _short(Path(error.filename)), error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if Path(frame.filename).match(METHODS)]
    return (_short(Path(inside[-1].filename)), inside[-1].lineno) if inside else (otherwise, None)


def place_of(error: Exception, otherwise: str) -> str:
    """Return where an error came from, in words."""
    file, line = file_of(error, otherwise)
    return f"{file}, line {line}" if line else file


def said(error: Exception) -> str:
    """Return the kind of an error and its message."""
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else one_line(error)}"


def _short(path: Path) -> str:
    """Return a path relative to the repository if it is that of a method."""
    return "/".join(path.parts[-3:]) if path.match(METHODS) else str(path)
