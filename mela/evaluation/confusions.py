"""Tell which test classes are taken for which, and which images are mistaken most often.

The classes are the true ones where they are known, and elsewhere the labels of each task as its person wrote them.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mela.data.array_types import Ints
from mela.evaluation.calibration import QueryOutputs
from mela.io.name_tables import KEYS, with_names
from mela.io.schemas import CONFUSIONS, MISTAKEN, PREDICTIONS

# pairs of which images are told, and how many
PAIRS, IMAGES = 12, 9
# standard deviations that 95% of a normal distribution lie within
WITHIN = 1.96


def predicted_labels(model: str, outputs: QueryOutputs, shots: Sequence[int], task_ids: Ints) -> pd.DataFrame:
    """Return what each query was taken for, with as many support images as there are.

    Parameters
    ----------
    model : str
        Name of an embedding.
    outputs : QueryOutputs
        Those of this embedding.
    shots : sequence of int
        Numbers of support images that were measured.
    task_ids : int64 (n_tasks,)

    Returns
    -------
    DataFrame
        Columns as `mela.io.schemas.PREDICTIONS`; no rows where no task allows any of the shots.
    """
    for setting in (f"{number}_shot" for number in sorted(shots, reverse=True)):
        parts = [
            pd.DataFrame(
                {
                    "task_id": np.repeat(task_ids[group.positions], group.query.shape[1]),
                    "image_id": group.query.ravel(),
                    "local_label": group.query_labels.ravel(),
                    "predicted": predicted.ravel(),
                }
            )
            for group, predicted in outputs.predicted(setting)
        ]
        if parts:
            return pd.concat(parts, ignore_index=True).assign(model=model, setting=setting)
    return PREDICTIONS.empty_table().to_pandas()


def confusions(
    predictions: pd.DataFrame, manifest: pd.DataFrame, truth: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count how often the images of a class are taken for another class of their task.

    Parameters
    ----------
    predictions : DataFrame
        Columns setting, task_id, image_id, local_label and predicted, of one embedding in one setting.
    manifest : DataFrame
        Their tasks, with columns task_id, image_id and local_label. The class of a label is that of most of its images.
    truth : DataFrame
        Columns image_id and class; a truth without rows is none.

    Returns
    -------
    pairs : DataFrame
        Columns as `mela.io.schemas.CONFUSIONS`: of the queries of a class in tasks that have the other one, how many
        were taken for that. Those pairs come first whose rate is certainly high: by the lower end of its 95% interval
        (Wilson, "Probable inference, the law of succession, and statistical inference", 1927).
    mistaken : DataFrame
        Columns as `mela.io.schemas.MISTAKEN`: of the first pairs, the images that were mistaken most often.
    """
    known = manifest.merge(truth[["image_id", "class"]], on="image_id").groupby(KEYS)["class"]
    return _counted(predictions, known.agg(lambda images: images.mode().iloc[0]).rename("class").reset_index())


def confused_labels(
    predictions: pd.DataFrame, manifest: pd.DataFrame, names: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count how often the images of a label are taken for another label of their task, where nobody knows the classes.

    Parameters
    ----------
    predictions, manifest : DataFrame
        As above.
    names : DataFrame
        Columns as `mela.io.name_tables.TASK_NAMES`.

    Returns
    -------
    pairs, mistaken : DataFrame
        As above; a class is called like "pilz (anna)", by its label and its task.

    Raises
    ------
    MelaError
        There are names, but not of all labels.
    """
    written = with_names(manifest[KEYS].drop_duplicates(), names)
    return _counted(predictions, written.assign(**{"class": written["label"] + " (" + written["task"] + ")"}))


def _counted(predictions: pd.DataFrame, classes: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count confusions of classes, which are those of task_id and local_label."""
    if predictions.empty or classes.empty:
        return CONFUSIONS.empty_table().to_pandas(), MISTAKEN.empty_table().to_pandas()
    classes = classes[[*KEYS, "class"]]
    others = classes.rename(columns={"local_label": "predicted", "class": "taken_for"})
    named = predictions.merge(classes, on=KEYS)
    asked = named.groupby(["task_id", "class"]).size().rename("queries").reset_index()
    met = asked.merge(others[["task_id", "taken_for"]].drop_duplicates(), on="task_id")
    queries = met.groupby(["class", "taken_for"])["queries"].sum()
    wrong = named.merge(others, on=["task_id", "predicted"])
    wrong = wrong[wrong["class"] != wrong["taken_for"]]
    pairs = wrong.groupby(["class", "taken_for"]).size().rename("errors").to_frame().join(queries).reset_index()
    pairs = pairs.assign(setting=predictions["setting"].iloc[0], low=_lower(pairs["errors"], pairs["queries"]))
    pairs = pairs.sort_values(["low", "class", "taken_for"], ascending=[False, True, True], ignore_index=True)
    images = wrong.groupby(["class", "taken_for", "image_id"]).size().rename("times").reset_index()
    first = pairs.head(PAIRS).reset_index(names="rank")[["rank", "class", "taken_for"]]
    images = images.merge(first, on=["class", "taken_for"])
    images = images.sort_values(["rank", "times", "image_id"], ascending=[True, False, True])
    mistaken = images.groupby("rank").head(IMAGES)
    return pairs[CONFUSIONS.names], mistaken[MISTAKEN.names].reset_index(drop=True)


def _lower(errors: "pd.Series[int]", queries: "pd.Series[int]") -> "pd.Series[float]":
    rate, more = errors / queries, WITHIN**2 / queries
    return (rate + more / 2 - np.sqrt(more * (rate * (1 - rate) + more / 4))) / (1 + more)
