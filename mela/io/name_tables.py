"""Keep what people called their tasks, labels and images, beside the numbers that all stages compute with."""

import pandas as pd
import pyarrow as pa

from mela.errors import MelaError
from mela.io.schemas import FLAG, FLOAT, INT, TEXT

TASK_NAMES = pa.schema({"task_id": INT, "local_label": INT, "task": TEXT, "label": TEXT})
IMAGE_NAMES = pa.schema({"image_id": INT, "path": TEXT})
# the person, or other source, that each task comes from; no rows where nobody says
TASK_SOURCES = pa.schema({"task_id": INT, "source": TEXT})
# results/labels.csv: all labels of all people, and the classes that they were found to be, a missing number for none
LISTING = pa.schema(
    {"task": TEXT, "label": TEXT, "split": TEXT, "cluster": FLOAT, "name": TEXT, "certainty": FLOAT}
    | {"clustered": FLAG, "assigned": FLAG, "images": INT, "note": TEXT}
)
# results/wrong_labels.csv: training images that may belong to another label of their task, the most probable first
WRONG_LABELS = pa.schema(
    {"task": TEXT, "label": TEXT, "path": TEXT, "other": TEXT, "probability": FLOAT, "image_id": INT}
)
KEYS = ["task_id", "local_label"]


def names_of_labels(tasks: pd.DataFrame, given: pd.DataFrame) -> pd.DataFrame:
    """Return the task and the label, as people wrote them, of each numbered label.

    Parameters
    ----------
    tasks : DataFrame
        Tasks as `mela.sources.source.ImageSource.tasks` has them.
    given : DataFrame
        The tasks that the stage ``images`` has numbered.

    Raises
    ------
    MelaError
        These are not the same labels, because the raw data has changed in between.
    """
    names = tasks[TASK_NAMES.names].drop_duplicates(KEYS).sort_values(KEYS).reset_index(drop=True)
    numbered = given[KEYS].drop_duplicates().sort_values(KEYS).reset_index(drop=True)
    if not names[KEYS].equals(numbered):
        raise MelaError(
            f"data.root: its {len(names)} labels are no longer the {len(numbered)} that the stage images found; rerun "
            "images"
        )
    return names


def sources_of_tasks(tasks: pd.DataFrame | None, given: pd.DataFrame) -> pd.DataFrame:
    """Return the source of each numbered task; no rows where there are no tasks, or they have no column ``source``.

    Parameters and errors are those of `names_of_labels`.
    """
    if tasks is None or "source" not in tasks:
        return pd.DataFrame(columns=TASK_SOURCES.names)
    found = tasks[TASK_SOURCES.names].drop_duplicates().sort_values("task_id").reset_index(drop=True)
    if found["task_id"].tolist() != sorted(given["task_id"].unique()):
        raise MelaError(
            f"data.root: its {len(found)} tasks are no longer the {given['task_id'].nunique()} that the stage images "
            "found; rerun images"
        )
    return found


def no_names() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return empty tables of names, for drawn tasks, in which nobody wrote any and the paths hold the class."""
    return pd.DataFrame(columns=TASK_NAMES.names), pd.DataFrame(columns=IMAGE_NAMES.names)


def with_names(labels: pd.DataFrame, names: pd.DataFrame) -> pd.DataFrame:
    """Add the columns ``task`` and ``label`` to rows with task_id and local_label.

    Where nobody wrote names, they are the numbers of the task and of its label.

    Raises
    ------
    MelaError
        There are names, but not of all these labels.
    """
    if names.empty:
        return labels.assign(task=labels["task_id"].astype(str), label=labels["local_label"].astype(str))
    named = labels.merge(names, on=KEYS, how="left", validate="many_to_one")
    if named["task"].isna().any():
        row = named[named["task"].isna()].iloc[0]
        raise MelaError(f"names: label {row['local_label']} of task {row['task_id']} has no name; rerun names")
    return named


def names_by_cluster(listing: pd.DataFrame) -> dict[int, str]:
    """Return the names of the classes of a listing that have one."""
    named = listing[listing["clustered"] & (listing["name"] != "")].drop_duplicates("cluster")
    return {int(cluster): str(name) for cluster, name in zip(named["cluster"], named["name"], strict=True)}
