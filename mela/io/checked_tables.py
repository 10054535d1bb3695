"""Read tables of stages, and check that their rows make sense together.

Pandera could call these checks, but they would be the same functions, and its errors would name neither the file nor
the stage to rerun.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from mela.errors import MelaError
from mela.io import schemas, store
from mela.io.schemas import ROLES

RERUN = "rerun the stage that makes it"


def read_manifest(path: Path) -> pd.DataFrame:
    """Read the tasks of one split.

    Returns
    -------
    DataFrame
        Columns task_id, image_id, local_label and role, and dataset if there are several data sets; perhaps no rows.

    Raises
    ------
    MelaError
        Another role than support or query, an image twice in a task, local labels of a task that are not 0 to ways - 1
        of two ways or more, one without a support or a query image, or a task of several data sets; names the task.
    """
    rows = store.read_table(path, schemas.MANIFEST, schemas.MANIFEST_OF_DATASETS)
    labels, roles, task = rows["local_label"], rows["role"], rows["task_id"]
    _refuse(path, rows, ~roles.isin(ROLES), "roles support and query", "another one")
    _refuse(path, rows, rows.duplicated(["task_id", "image_id"]), "each image once", "one twice")
    ways = labels.groupby(task).transform("nunique")
    inside = labels.between(0, ways - 1)
    _refuse(path, rows, (ways < 2) | ~inside, "local labels 0 to ways - 1 of two ways or more", "others")
    keys = [task, labels]
    for role in ROLES:
        missing = ~(roles == role).groupby(keys).transform("any").astype(bool)
        _refuse(path, rows, missing, f"a {role} image of each local label", "none of one")
    if "dataset" in rows:
        first = rows["dataset"].groupby(task).transform("first")
        _refuse(path, rows, rows["dataset"] != first, "tasks of one data set each", "another in one")
    return rows


def _refuse(path: Path, rows: pd.DataFrame, wrong: "pd.Series[bool]", expected: str, got: str) -> None:
    if wrong.any():
        first = int(np.argmax(wrong.to_numpy()))
        row = rows.iloc[first]
        raise MelaError(
            f"{path}: row {first}: task {row['task_id']}: expected {expected}, got {got} (image {row['image_id']}, "
            f"local label {row['local_label']}, role {row['role']!r}); {RERUN}"
        )


def read_labels(path: Path) -> pd.DataFrame:
    """Read one label for each image.

    Returns
    -------
    DataFrame
        Columns image_id and label; perhaps no rows.

    Raises
    ------
    MelaError
        An image has several labels, or one that is not from 0 to the number of images less 1.
    """
    table = store.read_table(path, schemas.LABELS)
    wrong = table["image_id"].duplicated(keep=False) | ~table["label"].between(0, len(table) - 1)
    if wrong.any():
        image = table["image_id"][wrong].iloc[0]
        found = ", ".join(map(str, table["label"][table["image_id"] == image]))
        raise MelaError(f"{path}: image {image}: expected one label from 0 to {len(table) - 1}, got {found}; {RERUN}")
    return table


def read_truth(path: Path) -> pd.DataFrame:
    """Read the true class of each image.

    Returns
    -------
    DataFrame
        Columns image_id and class, and dataset if there are several; no rows where there is no truth.

    Raises
    ------
    MelaError
        An image occurs twice.
    """
    table = store.read_table(path, schemas.TRUTH, schemas.TRUTH_OF_DATASETS)
    twice = table["image_id"].duplicated()
    if twice.any():
        raise MelaError(f"{path}: image {table['image_id'][twice].iloc[0]}: expected one class, got several; {RERUN}")
    return table


def read_assignments(path: Path, manifest: pd.DataFrame) -> pd.DataFrame:
    """Read the cluster of each task class of a manifest.

    Returns
    -------
    DataFrame
        Columns task_id, local_label, cluster and clustered.

    Raises
    ------
    MelaError
        A task class occurs twice or is missing, or a cluster is not from 0 to the number of task classes less 1.
    """
    table = store.read_table(path, schemas.ASSIGNMENTS)
    expected = manifest[["task_id", "local_label"]].drop_duplicates()
    classes = pd.MultiIndex.from_frame(table[["task_id", "local_label"]])
    if classes.has_duplicates or set(classes) != set(pd.MultiIndex.from_frame(expected)):
        raise MelaError(
            f"{path}: its {len(table)} rows do not list each of the {len(expected)} classes of the training tasks "
            f"once; {RERUN}"
        )
    wrong = ~table["cluster"].between(0, len(table) - 1)
    if wrong.any():
        found = table["cluster"][wrong].iloc[0]
        raise MelaError(f"{path}: expected clusters from 0 to {len(table) - 1}, got {found}; {RERUN}")
    return table


def require_known(path: Path, labels: pd.DataFrame, known: pd.DataFrame) -> None:
    """Raise MelaError unless there are labels, and all of their images are known.

    Parameters
    ----------
    path : Path
        File of the labels, named in the error.
    labels, known : DataFrame
        Tables with a column image_id.
    """
    if labels.empty:
        raise MelaError(f"{path}: expected labels of one image or more, got none; {RERUN}")
    strange = ~labels["image_id"].isin(known["image_id"])
    if strange.any():
        image = labels["image_id"][strange].iloc[0]
        raise MelaError(f"{path}: image {image}: expected an image of the training tasks, got another; {RERUN}")
