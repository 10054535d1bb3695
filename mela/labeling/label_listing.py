"""List all labels of all people as they were written, with the class that each was found to be."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from mela.errors import MelaError
from mela.io.name_tables import KEYS, LISTING, with_names
from mela.labeling.task_classes import TaskSamples, class_means, manifest_samples, with_written
from mela.labeling.task_labeler import TaskLabeler
from mela.labeling.unseen_tasks import place

DROPPED = "left out: two labels of this task reached one class"
ALONE = "not merged with any other label"
NONE = "none of the classes that were found"
UNKNOWN = "not assigned: an image of its task has no features"


def listing(
    labeler: TaskLabeler,
    train: TaskSamples,
    assignments: pd.DataFrame,
    held_out: Mapping[str, pd.DataFrame],
    names: pd.DataFrame,
    image_ids: npt.NDArray[np.int64],
    features: npt.NDArray[np.float32],
) -> pd.DataFrame:
    """List the labels of all tasks, those of training tasks first.

    Parameters
    ----------
    labeler : LearnLabeler or MergeLabeler
        Its clusters are numbered as in `assignments`.
    train : TaskSamples
        The training tasks, which the labeler was fitted to.
    assignments : DataFrame
        The clusters of their labels, as the stage ``label`` wrote them.
    held_out : mapping of str to DataFrame
        Manifests of other splits, whose labels are assigned to the clusters.
    names : DataFrame
        What people wrote, with columns as `mela.io.name_tables.TASK_NAMES`; perhaps no rows. Labels of held-out tasks
        are placed by them as well, if names counted in the fit.
    image_ids : int64 (n,)
    features : float32 (n, m)
        Features of images of the manifests. A task is not assigned if one of its images has none.

    Returns
    -------
    DataFrame
        Columns as `mela.io.name_tables.LISTING`; no class has a name yet. Certainty is in percent, and missing where a
        label was merged with no other one. For a label of no cluster, it is the certainty of that.

    Raises
    ------
    MelaError
        The labeler belongs to other features or clusters.
    """
    k, m = len(labeler.cluster_centers_), train.features.shape[1]
    if labeler.n_features_in_ != m or not assignments["cluster"].lt(k).all():
        raise MelaError(
            f"labeler: it was fitted to other tasks, with {labeler.n_features_in_} features and {k} clusters, while "
            f"these have {m} features and clusters up to {assignments['cluster'].max()}; rerun "
            "the stage that infers the labels"
        )
    rows = [_of_training(labeler, train, assignments)]
    for split, manifest in held_out.items():
        known = manifest["image_id"].isin(image_ids).groupby(manifest["task_id"]).transform("all").astype(bool)
        rows.append(_without_features(manifest[~known]).assign(split=split))
        if known.any():
            samples = manifest_samples(manifest[known], image_ids, features)
            if not names.empty:
                samples = with_written(samples, with_names(manifest[known], names)["label"].to_numpy())
            taken = _of_the_same_people(pd.concat(rows, ignore_index=True), samples, names)
            rows.append(_assigned(labeler, samples, taken).assign(split=split))
    table = with_names(pd.concat(rows, ignore_index=True), names).assign(name="")
    order = {split: number for number, split in enumerate(["train", *held_out])}
    table = table.sort_values(
        ["split", *KEYS], key=lambda column: column.map(order) if column.name == "split" else column
    )
    return table[LISTING.names].reset_index(drop=True)


def _of_training(labeler: TaskLabeler, train: TaskSamples, assignments: pd.DataFrame) -> pd.DataFrame:
    rows = _labels(train).merge(assignments, on=KEYS, how="left", validate="one_to_one")
    clustered = rows["clustered"].to_numpy(dtype=bool)
    clusters = np.where(clustered, rows["cluster"], -1).astype(np.int64)
    certainty = np.full(len(rows), np.nan)
    model, space = labeler.memberships_, labeler.space_
    if model is not None and space is not None:
        classes = class_means(train)
        points, weights = space.transform(labeler._means(classes)), classes.sizes / labeler.class_size_
        more = labeler._told_by_names(clusters)
        found = model.of_tasks(points, weights, clusters, classes.starts, members=True, more=more)
        certainty[clustered] = found[np.flatnonzero(clustered), clusters[clustered]]
    alone = clustered & (np.bincount(clusters[clustered], minlength=1)[clusters] == 1)
    return rows.assign(
        split="train",
        cluster=_numbers(clusters),
        certainty=np.where(alone, np.nan, _percent(certainty)),
        assigned=False,
        note=np.select([~clustered, alone], [DROPPED, ALONE], ""),
    )


def _of_the_same_people(rows: pd.DataFrame, samples: TaskSamples, names: pd.DataFrame) -> dict[int, list[int]]:
    """Return, by the number of each task that is left, the clusters of its author's other labels.

    A label that no task is learned from lies in a task of its own, but the person who wrote it told it from the others.
    """
    if names.empty:
        return {}
    people = names.drop_duplicates("task_id").set_index("task_id")["task"]
    clustered = rows[rows["clustered"]]
    known = clustered["cluster"].astype(int).groupby(clustered["task_id"].map(people)).agg(list)
    return {task: known.get(people.get(task), []) for task in np.unique(samples.task_ids)}


def _assigned(labeler: TaskLabeler, samples: TaskSamples, taken: Mapping[int, list[int]]) -> pd.DataFrame:
    placed = place(labeler, samples, taken)
    clustered = placed.clusters >= 0
    return _labels(samples).assign(
        cluster=_numbers(placed.clusters),
        certainty=_percent(placed.certainty),
        clustered=clustered,
        assigned=True,
        note=np.where(clustered, "", NONE),
    )


def _without_features(manifest: pd.DataFrame) -> pd.DataFrame:
    rows = manifest.groupby(KEYS).size().rename("images").reset_index()
    return rows.assign(
        cluster=pd.array([None] * len(rows), dtype="Int64"),
        certainty=np.nan,
        clustered=False,
        assigned=False,
        note=UNKNOWN,
    )


def _labels(samples: TaskSamples) -> pd.DataFrame:
    return pd.DataFrame({"task_id": samples.task_ids, "local_label": samples.local_labels, "images": samples.sizes})


def _numbers(clusters: npt.NDArray[np.int64]) -> "pd.Series[int]":
    return pd.Series(clusters, dtype="Int64").mask(clusters < 0)


def _percent(probability: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.round(100 * probability, 1)
