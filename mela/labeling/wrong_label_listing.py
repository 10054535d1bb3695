"""List the images of people's tasks that probably have the label of another class of their task."""

import numpy as np
import pandas as pd

from mela.data.array_types import Ints
from mela.io.name_tables import KEYS, WRONG_LABELS, with_names
from mela.labeling.task_classes import TaskSamples
from mela.labeling.wrong_labels import find_wrong_labels

# in percent; less probable ones are not listed
LEAST = 20.0


def wrong_label_listing(
    samples: TaskSamples, image_ids: Ints, assignments: pd.DataFrame, names: pd.DataFrame, files: pd.DataFrame
) -> tuple[pd.DataFrame, float]:
    """List images whose label is wrong with a probability of a fifth or more, and estimate how many are wrong.

    Parameters
    ----------
    samples : TaskSamples
        Of the training tasks.
    image_ids : int64 (n_rows,)
        Image of each row of features.
    assignments : DataFrame
        Columns task_id, local_label, cluster and clustered: the clusters of all labels.
    names : DataFrame
        What people wrote, with columns as `mela.io.name_tables.TASK_NAMES`.
    files : DataFrame
        Columns image_id and path.

    Returns
    -------
    DataFrame
        Columns as `mela.io.name_tables.WRONG_LABELS`, probabilities in percent, the largest first. An image in several
        tasks may have several rows.
    share : float
        Percentage of the training images that probably have a wrong label.
    """
    found = find_wrong_labels(samples, clusters_of(samples, assignments))
    probabilities = np.round(100 * found.probabilities, 1)
    rows = np.flatnonzero(probabilities >= LEAST)
    table = pd.DataFrame({"image_id": image_ids[samples.index[rows]], "probability": probabilities[rows]})
    for column, of in (("label", samples.classes[rows]), ("other", found.others[rows])):
        keys = pd.DataFrame({"task_id": samples.task_ids[of], "local_label": samples.local_labels[of]})
        named = with_names(keys, names)
        table["task"], table[column] = named["task"], named["label"]
    table = table.merge(files, on="image_id", how="left", validate="many_to_one")
    table = table.sort_values(["probability", "task", "path"], ascending=[False, True, True])
    return table[WRONG_LABELS.names].reset_index(drop=True), 100 * found.share


def clusters_of(samples: TaskSamples, assignments: pd.DataFrame) -> Ints:
    """Return the cluster of each task class (n_classes,) of a table of assignments, -1 where there is none."""
    known = assignments[assignments["clustered"]].set_index(KEYS)["cluster"]
    return known.reindex(samples.names, fill_value=-1).to_numpy(dtype=np.int64)
