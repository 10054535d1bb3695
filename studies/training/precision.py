"""Compare training in bfloat16 and float32, for ``python -m studies training.precision``."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from mela.data.episodes import Episodes
from mela.evaluation.intervals import Interval
from mela.models.backbones import Backbone
from mela.runtime.compute import Compute
from mela.runtime.device import keep_freed_memory
from studies.cells import Cell
from studies.lab import cached, wide

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def trained(cell: Cell, embedding: str) -> Backbone:
    """Return the initial embedding as cells have it, or the final one by the preset's schedule and true labels."""
    if embedding == "initial":
        tasks = Episodes(cell.tasks("once"))
        return cell.train_strong(cell.backbone(tasks.image_ids()), tasks)
    return cell.finished(cell.true_targets(cell.truth("train")["image_id"].to_numpy()))


def means(cell: Cell, embedding: str, name: str) -> pd.Series:
    """Return the mean accuracy over the test tasks by setting; read the tasks' accuracies if they are known."""
    path = cell.own / f"precision-{embedding}-{name}.parquet"
    return wide(cached(path, lambda: cell.tested(trained(cell, embedding), cell.tasks("test")))).mean()


def measure(*, data: str, embedding: str, seeds: int, folder: Path) -> list[dict[str, Any]]:
    """Return a row for each setting."""
    keep_freed_memory()
    found = {
        name: pd.concat(
            [means(Cell.of(folder, data, seed, Compute(dtype=dtype)), embedding, name) for seed in range(seeds)], axis=1
        )
        for name, dtype in DTYPES.items()
    }
    differences, rows = found["bfloat16"] - found["float32"], []
    for setting in map(str, differences.index):
        own = differences.loc[setting]
        row = {"setting": setting, "seeds": seeds}
        row |= {name: round(float(np.mean(values.loc[setting])), 2) for name, values in found.items()}
        difference = Interval.of(own.to_numpy(np.float64))
        row |= {"difference": round(difference.mean, 2), "difference_ci95": round(difference.ci95, 2)}
        rows.append(row | {"of_each_seed": " ".join(f"{value:+.2f}" for value in own)})
    return rows
