"""Score how well inferred labels match the truth."""

from typing import Any

import numpy as np
import pandas as pd

from mela.data.array_types import Ints


def score_labels(
    labels: pd.DataFrame, assignments: pd.DataFrame | None, manifest: pd.DataFrame, truth: pd.DataFrame
) -> dict[str, Any]:
    """Return the number of clusters and, given truth, the number of classes and how well both match.

    Parameters
    ----------
    labels : DataFrame
        Columns image_id, label.
    assignments : DataFrame or None
        See `score_tasks`; None for labels that ignore the tasks.
    manifest, truth : DataFrame
        See `score_tasks`; a truth without rows is none.
    """
    found: dict[str, Any] = {"clusters": int(labels["label"].nunique())}
    if truth.empty:
        return found
    found["true_classes"] = int(truth.merge(manifest, on="image_id")["class"].nunique())
    by_task = {} if assignments is None else score_tasks(assignments, manifest, truth)
    return found | by_task | score_images(labels, truth)


def score_tasks(assignments: pd.DataFrame, manifest: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
    """Return the share of tasks clustered and the clustering accuracy over these and over all tasks, in percent.

    The true class of a cluster is the most frequent one among the samples counted; an image counts once for each task
    that it occurs in. Tasks that were not clustered are scored by the nearest centroids of their classes.

    Parameters
    ----------
    assignments : DataFrame
        Columns task_id, local_label, cluster, clustered.
    manifest : DataFrame
        Columns task_id, image_id, local_label.
    truth : DataFrame
        Columns image_id, class.
    """
    samples = manifest.merge(truth, on="image_id").merge(assignments, on=["task_id", "local_label"])
    return {
        "tasks_clustered": 100 * float(assignments.groupby("task_id")["clustered"].all().mean()),
        "accuracy": _accuracy(samples[samples["clustered"]]),
        "accuracy_all_tasks": _accuracy(samples),
    }


def _accuracy(samples: pd.DataFrame) -> float:
    return 100 * majority_accuracy(samples["cluster"].to_numpy(dtype=np.int64), pd.factorize(samples["class"])[0])


def score_clusters(labels: pd.DataFrame, truth: pd.DataFrame) -> pd.DataFrame:
    """Describe each label by its true classes, one row each.

    Returns
    -------
    DataFrame
        Columns label, class (the most frequent true class among its images, the first in order at a tie), purity (its
        share in percent) and classes (how many there are); no rows without truth.
    """
    images = labels.merge(truth, on="image_id")
    counts = images.groupby(["label", "class"]).size().rename("count").reset_index()
    counts = counts.sort_values(["label", "count", "class"], ascending=[True, False, True])
    found = counts.groupby("label").agg({"class": "first", "count": ["first", "sum", "size"]})
    return pd.DataFrame(
        {
            "label": found.index,
            "class": found["class", "first"].to_numpy(),
            "purity": 100 * (found["count", "first"] / found["count", "sum"]).to_numpy(),
            "classes": found["count", "size"].to_numpy(),
        }
    )


def score_images(labels: pd.DataFrame, truth: pd.DataFrame) -> dict[str, float]:
    """Return purity (percent), adjusted Rand index and mutual information of the labels that pre-training learns."""
    images = labels.merge(truth, on="image_id")
    return partition_scores(images["label"].to_numpy(dtype=np.int64), pd.factorize(images["class"])[0])


def majority_accuracy(clusters: Ints, truth: Ints) -> float:
    """Return the share of samples of their cluster's most frequent true class (clustering accuracy, purity).

    Parameters
    ----------
    clusters, truth : int64 (n,)
        Cluster and true class of each sample, from 0.
    """
    table = np.zeros((clusters.max() + 1, truth.max() + 1))
    np.add.at(table, (clusters, truth), 1)
    return float(table.max(axis=1).sum() / table.sum())


def partition_scores(labels: Ints, truth: Ints) -> dict[str, float]:
    """Return purity in percent, adjusted Rand index and normalised mutual information of two labellings (n,)."""
    # half a second, for which nobody waits who only wants to see the options, or has a parameter wrong
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    return {
        "purity": 100 * majority_accuracy(labels, truth),
        "ari": float(adjusted_rand_score(truth, labels)),
        "nmi": float(normalized_mutual_info_score(truth, labels)),
    }
