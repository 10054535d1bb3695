"""Manifests: which images form which task, with local labels only."""

import numpy as np
import pandas as pd

from mela.errors import MelaError
from mela.params import TaskParams
from mela.sampling import draw_with_replacement, draw_without_replacement

COLUMNS = ["task_id", "image_id", "local_label", "role"]


def given_split(tasks: pd.DataFrame, split: str) -> pd.DataFrame:
    """The tasks of one split of data that came as tasks, as they are."""
    return tasks.loc[tasks["split"] == split, COLUMNS].reset_index(drop=True)


def draw_split(images: pd.DataFrame, settings: TaskParams, split: str) -> pd.DataFrame:
    """Draw the tasks of one split from its true classes.

    Parameters
    ----------
    images : DataFrame
        Columns image_id and class, the images of this split.
    settings : TaskParams
    split : {"train", "val", "test"}
        Only training tasks may be drawn without replacement; the others are independent of each other.

    Raises
    ------
    MelaError
        The classes do not allow the tasks asked for.
    """
    counts = {"train": settings.train, "val": settings.val, "test": settings.test}
    count = counts[split]
    if count == 0:
        return pd.DataFrame({name: pd.Series(dtype=object if name == "role" else np.int64) for name in COLUMNS})
    if images.empty:
        raise MelaError(f"tasks.{split}: expected 0 tasks, since no {split} class has images, got {count}")
    classes = {str(name): ids.to_numpy(dtype=np.int64) for name, ids in images.groupby("class")["image_id"]}
    shape = {"ways": settings.ways, "shots": settings.shots, "queries": settings.queries, "seed": settings.seed}
    if split == "train" and not settings.replacement:
        return draw_without_replacement(classes, n_tasks=count, split=split, **shape)
    return draw_with_replacement(classes, n_tasks=count or 0, split=split, **shape)
