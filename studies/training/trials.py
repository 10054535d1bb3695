"""Trainings that are compared on validation tasks, a row each of a table that goes on where it stopped.

One seed, which no other table has. No test task is read.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import typer

from benchmark import places
from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes
from mela.errors import DivergedError
from mela.io import store
from mela.io.tables import read_manifest
from mela.models.backbones import Backbone, build_backbone
from mela.models.files import configure
from mela.params import AugmentParams, ModelParams
from mela.runtime.compute import Compute
from mela.runtime.device import choose_device, choose_dtype
from mela.training.loop import Schedule, Training

SEED = 100
Optimizer = Literal["sgd", "adam"]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A row: a data set of the benchmark, whose tasks are drawn, and what its other attributes say.

    Attributes
    ----------
    data : str
    """

    data: str

    def measure(self) -> dict[str, float]:
        """Validation accuracies in percent, by setting."""
        raise NotImplementedError

    @property
    def params(self) -> Path:
        """The benchmark's parameters."""
        return places.preset(self.data)

    @property
    def folder(self) -> Path:
        """Of images and tasks."""
        return places.shared(self.data)

    @cached_property
    def images(self) -> npt.NDArray[np.uint8]:
        """All images."""
        return store.open_images(self.folder / "images.npy")

    def tasks(self, split: str) -> Episodes:
        """To train on, or to choose by."""
        return Episodes(read_manifest(self.folder / f"{split}.parquet"))

    @cached_property
    def augmentation(self) -> Augmentation:
        """Of training images."""
        return Augmentation(**AugmentParams.read(self.params).model_dump())

    def backbone(self, tasks: Episodes, seed: int = SEED) -> Backbone:
        """An embedding that has learned nothing, for the images of these tasks."""
        model = ModelParams.read(self.params)
        return build_backbone(**configure(model, self.images, tasks.image_ids()), seed=seed)

    def training(self, stage: str, schedule: Schedule, seed: int = SEED) -> Training:
        """With what all have in common."""
        precision = ModelParams.read(self.params).precision
        return Training(
            stage=stage,
            schedule=schedule,
            seed=seed,
            augmentation=self.augmentation,
            compute=Compute(dtype=choose_dtype(precision, choose_device("auto"))),
        )


def means(accuracies: pd.DataFrame) -> dict[str, float]:
    """Of columns setting and accuracy, by setting."""
    return {str(setting): mean for setting, mean in accuracies.groupby("setting")["accuracy"].mean().items()}


def complete(out: Path, trials: Iterable[Trial]) -> None:
    """Measure what a table lacks; what diverges gets a row without accuracies, any other error ends the trials.

    Parameters
    ----------
    out : Path
        The table; each row is there as soon as it is measured.
    trials : iterable of Trial
    """
    for trial in trials:
        key = asdict(trial)
        if _holds(_known(out, trial), key):
            continue
        try:
            found = trial.measure()
        except DivergedError as error:
            typer.echo(f"{key}: {error}")
            found = {}
        # another process may have added rows meanwhile
        rows = pd.concat([_known(out, trial), pd.DataFrame([key | found])]).sort_values([*key], kind="stable")
        store.write_csv(out, rows)
        typer.echo(f"{key} {found}")


def _holds(rows: pd.DataFrame, key: dict[str, Any]) -> bool:
    """Whether a row has these values, numbers up to the digits that a table keeps."""
    same = np.ones(len(rows), np.bool_)
    for name, value in key.items():
        same &= np.isclose(rows[name], value, rtol=1e-5, atol=0) if isinstance(value, float) else rows[name] == value
    return bool(same.any())


def _known(out: Path, trial: Trial) -> pd.DataFrame:
    """Rows of the table; what is text in a trial is text there too, where it looks like numbers."""
    if not out.exists():
        return pd.DataFrame(columns=[field.name for field in fields(trial)])
    return pd.read_csv(
        out, dtype={field.name: str for field in fields(trial) if isinstance(getattr(trial, field.name), str)}
    )
