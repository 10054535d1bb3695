"""Compare recipes of pre-training on true labels: the published schedule, and shorter ones, by validation tasks.

One seed, which no other table has. No test task is read.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from mela.data.episodes import Episodes
from mela.data.quarter_turns import TURNS
from mela.data.sampling import draw_split
from mela.params import DataParams, ModelParams, PretrainParams, TaskParams
from mela.runtime.compute import Compute
from mela.runtime.device import choose_dtype
from studies.cells import PRESETS
from studies.lab import Lab, cached
from studies.training.trials import SEED, means

# half of a 95% interval over so many tasks is some .6 points
TASKS = 1000


class Images(Lab):
    """Hold the images of a preset, all of which a recipe learns from."""

    @classmethod
    def of(cls, data: str, folder: Path, root: Path) -> "Images":
        """Return the images of a preset, packed below a folder, and its parameters with another seed."""
        params = PRESETS / f"{data}.yaml"
        dtype = choose_dtype(ModelParams.read(params).precision, torch.device("cpu"))
        own = cls(params=params, folder=folder / data, seed=SEED, compute=Compute(dtype=dtype))
        own.pack(own.block(DataParams, root=str(root)), own.block(TaskParams).shots)
        return own

    def validation(self) -> Episodes:
        """Return tasks to choose by; they are drawn when first asked for."""
        settings = self.block(TaskParams, val=TASKS, seed=SEED)
        return Episodes(cached(self.folder / "val.parquet", lambda: draw_split(self.truth("val"), settings, "val")))


def measure(*, data: str, recipe: str, settings: dict[str, Any], folder: Path, root: Path) -> dict[str, float]:
    """Return validation accuracies after training by a recipe on the CPU, with its images and minutes of a core.

    Parameters
    ----------
    data : str
        A preset.
    recipe : str
        Its name, which tables have.
    settings : dict
        What differs from the preset's block ``pretrain``.
    folder, root : Path
        Where images are packed, and the raw data.
    """
    del recipe
    own = Images.of(data, folder, root)
    targets = own.true_targets(np.sort(own.truth("train")["image_id"].to_numpy()))
    schedule, began = own.block(PretrainParams, **settings), time.process_time()
    backbone = own.pretrained(targets, schedule)
    minutes = (time.process_time() - began) / 60
    found: pd.DataFrame = own.accuracies(backbone, own.validation())
    in_epoch = len(targets.image_ids) * (TURNS if schedule.rotated_classes else 1)
    return {"images": schedule.epochs * in_epoch, "minutes": minutes} | means(found)
