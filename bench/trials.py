"""Trainings that are compared on validation tasks, a row each of a table that goes on where it stopped.

One seed, which no other table has. No test task is read.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import typer

from benchmark import places
from mela import store
from mela.augmentation import Augmentation
from mela.backbones import Backbone, build_backbone
from mela.checked import read_manifest
from mela.compute import Compute
from mela.device import choose_device
from mela.episodes import Episodes
from mela.errors import MelaError
from mela.models import configure
from mela.params import AugmentParams, ModelParams
from mela.precision import choose_dtype
from mela.training import Schedule, Training

SEED = 100


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

    @cached_property
    def params(self) -> Path:
        """The benchmark's parameters."""
        return places.preset(self.data)

    @cached_property
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

    def backbone(self, tasks: Episodes) -> Backbone:
        """An embedding that has learned nothing, for the images of these tasks."""
        model = ModelParams.read(self.params)
        return build_backbone(**configure(model, self.images, tasks.image_ids()), seed=SEED)

    def training(self, stage: str, schedule: Schedule) -> Training:
        """With what all have in common."""
        precision = ModelParams.read(self.params).precision
        return Training(
            stage=stage,
            schedule=schedule,
            seed=SEED,
            augmentation=self.augmentation,
            compute=Compute(dtype=choose_dtype(precision, choose_device("auto"))),
        )


def means(accuracies: pd.DataFrame) -> dict[str, float]:
    """Of columns setting and accuracy, by setting."""
    return {str(setting): mean for setting, mean in accuracies.groupby("setting")["accuracy"].mean().items()}


def complete(out: Path, trials: Iterable[Trial], types: dict[str, Any] | None = None) -> None:
    """Measure what a table lacks; what does not converge gets a row without accuracies.

    Parameters
    ----------
    out : Path
        The table; each row is there as soon as it is measured.
    trials : iterable of Trial
    types : dict, optional
        Of columns that do not show what they are.
    """

    def known(columns: Iterable[str]) -> pd.DataFrame:
        return pd.read_csv(out, dtype=types) if out.exists() else pd.DataFrame(columns=[*columns])

    for trial in trials:
        key = asdict(trial)
        if (known(key)[[*key]] == pd.Series(key)).all(axis=1).any():
            continue
        try:
            found = trial.measure()
        except MelaError as error:
            typer.echo(f"{key}: {error}")
            found = {}
        # another process may have added rows meanwhile
        rows = pd.concat([known(key), pd.DataFrame([key | found])]).sort_values([*key], kind="stable")
        store.write_csv(out, rows)
        typer.echo(f"{key} {found}")
