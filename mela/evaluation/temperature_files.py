"""Store the temperatures and thresholds of models in a file beside them that knows each model by its SHA-256."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mela.errors import MelaError
from mela.io.store import read_json, write_json

NAME = "temperatures.json"


class Temperatures(BaseModel):
    """Hold what validation tasks have told of one model, by the number of shots.

    Attributes
    ----------
    C : float
        Inverse regularisation of the logistic head that the temperatures are for.
    temperatures : dict
        See `mela.evaluation.calibration`.
    thresholds : dict
        See `mela.evaluation.unknown`; they depend on no head.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)
    C: float = Field(gt=0)
    temperatures: dict[int, float]
    thresholds: dict[int, float] = {}

    def knows(self, C: float) -> bool:
        """Return whether there are temperatures for a head of that C."""
        return bool(self.temperatures) and self.C == C

    def of(self, shots: float, C: float) -> float:
        """Return the temperature for the nearest number of shots, by ratio, and 1 for a head of another C."""
        if not self.knows(C):
            return 1.0
        return _nearest(self.temperatures, shots)

    def threshold(self, shots: float) -> float | None:
        """Return the cosine below which an image is unknown, for the nearest number of shots; None if there is none."""
        return _nearest(self.thresholds, shots) if self.thresholds else None


def _nearest(values: Mapping[int, float], shots: float) -> float:
    """Return the value for the nearest number of shots, by ratio."""
    return values[min(values, key=lambda known: (abs(np.log(known / shots)), known))]


def sha256(model: Path) -> str:
    """Return the SHA-256 of a file."""
    with model.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_temperatures(path: Path, models: Mapping[Path, Mapping[str, Mapping[str, Any]]], *, C: float) -> None:
    """Write the temperatures of models that lie beside the file.

    Parameters
    ----------
    path : Path
    models : mapping of Path to mapping
        What `mela.evaluation.calibration.calibrations` found for each model.
    C : float
        Inverse regularisation of the heads that gave the logits.
    """
    content = {}
    for model, found in models.items():
        known: dict[str, dict[int, float]] = {"temperature": {}, "threshold": {}}
        for setting, values in found.items():
            for name, by_shots in known.items():
                if values.get(name) is not None:
                    by_shots[int(setting.removesuffix("_shot"))] = values[name]
        entry = Temperatures(C=C, temperatures=known["temperature"], thresholds=known["threshold"])
        content[sha256(model)] = {"file": model.name} | entry.model_dump()
    write_json(path, content)


def read_temperatures(model: Path) -> Temperatures | None:
    """Return the temperatures of a model, or None if nobody has calibrated this very file.

    Raises
    ------
    MelaError
        The file of temperatures is damaged.
    """
    found = read_entry(model.with_name(NAME), model)
    return None if found is None else found[1]


def read_entry(path: Path, model: Path) -> tuple[str, Temperatures] | None:
    """Return what a file of temperatures knows of a model: its name at that time, and its temperatures.

    Raises
    ------
    MelaError
        The file of temperatures is damaged.
    """
    if not path.is_file():
        return None
    content = read_json(path).get(sha256(model))
    if content is None:
        return None
    try:
        found = Temperatures.model_validate(content)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0]["msg"].lower()
        raise MelaError(f"{path}: expected the temperatures of {model.name}, got {reason}; rerun evaluate") from None
    return str(content.get("file")), found
