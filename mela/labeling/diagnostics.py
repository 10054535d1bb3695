"""Describe inferred global labels by metrics, tables, and remarks."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from mela.labeling.pruning import Pass

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from mela.labeling.image_labels import ImageLabels
    from mela.labeling.task_labeler import TaskLabeler

THIN = 0.9
POOR = 0.5


def label_metrics(labeler: "TaskLabeler") -> dict[str, Any]:
    """Return what is known about the labels without truth; shares are in percent."""
    quality = labeler.pair_quality_
    metrics: dict[str, Any] = {
        "tasks_clustered": 100 * float((labeler.class_labels_[labeler.task_classes_.starts[:-1]] >= 0).mean()),
        "tasks_of_one_class": labeler.n_single_tasks_,
        "pair_precision": 100 * quality.precision,
        "pair_precision_error": 100 * quality.precision_error,
    }
    if labeler.soft:
        own = np.flatnonzero(labeler.class_labels_ >= 0)
        metrics["certainty"] = 100 * float(labeler.class_weights_[own, labeler.class_labels_[own]].mean())
    if hasattr(labeler, "consistency_"):
        metrics["consistency"] = 100 * labeler.consistency_
        if labeler.expected_ari_ is not None:
            metrics["expected_ari"] = labeler.expected_ari_
    return metrics


def passes_table(labeler: "TaskLabeler") -> pd.DataFrame:
    """List the passes of pruning, counted from 1, with shares in percent; no rows if merged."""
    table = pd.DataFrame(getattr(labeler, "path_", []), columns=[field.name for field in fields(Pass)])
    table[["tasks_clustered", "precision"]] *= 100
    return table.rename_axis("pass").rename(lambda row: row + 1).reset_index()


def merges_table(labeler: "TaskLabeler") -> pd.DataFrame:
    """List the merges of both phases: the clusters left, the log odds, and whether it was made.

    There are no rows if labels are pruned, or if the clusters are those of people who differ. Merges that left more
    than five times the clusters found are not listed.
    """
    columns = ["phase", "clusters", "log_odds", "made"]
    if not hasattr(labeler, "merged_") or labeler.effects_ is not None:
        return pd.DataFrame(columns=columns)
    tables = []
    for number, done in enumerate(labeler.merged_.phases, start=1):
        left = done.n_items - np.arange(1, len(done.odds) + 1)
        made = np.arange(len(done.odds)) < done.kept
        tables.append(pd.DataFrame({"phase": number, "clusters": left, "log_odds": done.odds, "made": made}))
    table = pd.concat(tables)
    return table[table["clusters"] <= 5 * len(labeler.counts_)]


def sizes_table(labeler: "TaskLabeler") -> pd.DataFrame:
    """Return the tasks of each cluster, largest first, and the number below which clusters were removed."""
    counts = np.sort(labeler.counts_)[::-1]
    threshold = getattr(labeler, "threshold_", float(labeler.min_count))
    return pd.DataFrame({"rank": np.arange(1, len(counts) + 1), "tasks": counts, "threshold": threshold})


def assignments_table(flat: "ImageLabels", labeler: "TaskLabeler") -> pd.DataFrame:
    """Return the label of each task class, and whether its task was clustered."""
    return pd.DataFrame(
        {
            "task_id": labeler.task_classes_.task_ids,
            "local_label": labeler.task_classes_.local_labels,
            "cluster": flat.renumber(labeler.class_clusters_),
            "clustered": labeler.class_labels_ >= 0,
        }
    )


def clusters_table(flat: "ImageLabels", weights: "csr_array", clusters: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Return each label's number of images and task classes, and its certainty of its images in percent.

    A label of one task class has nothing to be compared with, so its certainty is missing.

    Parameters
    ----------
    flat : ImageLabels
    weights : csr_array (n_labelled, n_clusters)
        Result of `mela.labeling.image_labels.image_weights`; their means over a label's own images are its certainty.
    clusters : int64 (n_classes,)
        Label of each task class that counts.
    """
    n = int(flat.labels.max()) + 1
    images = np.bincount(flat.labels, minlength=n)
    own = np.asarray(weights[np.arange(len(flat.labels)), flat.labels]).reshape(-1)
    certainty = 100 * np.bincount(flat.labels, weights=own, minlength=n) / images
    task_classes = np.bincount(clusters[clusters < n], minlength=n)
    certainty[task_classes == 1] = np.nan
    return pd.DataFrame({"label": np.arange(n), "images": images, "task_classes": task_classes, "certainty": certainty})


def merged_counts(clusters: npt.NDArray[np.int64]) -> dict[str, int]:
    """Count the task classes that share their cluster, those that are alone, and those without a cluster.

    Parameters
    ----------
    clusters : int64 (n_classes,)
        Cluster of every task class, -1 if it has none.
    """
    used = clusters[clusters >= 0]
    alone = int((np.bincount(used) == 1).sum())
    return {
        "task_classes_merged": len(used) - alone,
        "task_classes_not_merged": alone,
        "task_classes_left_out": len(clusters) - len(used),
    }


def single_tasks(labeler: "TaskLabeler") -> str | None:
    """Return a line about the tasks of one class, or None if there are none."""
    count = labeler.n_single_tasks_
    if not count:
        return None
    tasks = f"{count} of {len(labeler.task_classes_.starts) - 1} tasks"
    return f"{tasks} have a single class; they are labelled, but do not tell which classes differ"


def named(labeler: "TaskLabeler") -> str | None:
    """Return a line about the names of local labels, or None if none were given."""
    if labeler.task_classes_.written is None:
        return None
    found = labeler.names_
    if found is None:
        return "names of labels do not count, since people agree on them no more within clusters than elsewhere"
    count, names = int((found.names.groups >= 0).sum()), found.names
    return f"names of {count} of {len(names.groups)} labels count, in {names.n_groups} groups of alike ones"


def remark(labeler: "TaskLabeler") -> str | None:
    """Return what a user should know about how the clusters were found, in one line; None if nothing."""
    if hasattr(labeler, "consistency_"):
        differ = (
            "people differ: their task classes lie further apart than their samples tell, which the clusters allow for"
            if labeler.effects_ is not None
            else None
        )
        return _doubts(labeler, labeler.consistency_) or differ
    pruned = labeler.pruned_
    if pruned.guarded:
        return (
            f"pruning ran away to {pruned.path[-1].kept} clusters; took pass {pruned.chosen + 1} of "
            f"{len(pruned.path)}, after which classes of one task begin to share clusters; a larger labeler.q prunes "
            "less"
        )
    if not pruned.settled:
        return f"stopped at labeler.max_passes={labeler.max_passes} while clusters were still being removed"
    return None


def _doubts(labeler: "TaskLabeler", consistency: float) -> str | None:
    metrics = label_metrics(labeler)
    quality = labeler.pair_quality_
    # both are of features alone, which are not all where names count
    by_features = getattr(labeler, "names_", None) is None
    if by_features and consistency < THIN:
        found = (
            f"only {metrics['consistency']:.0f}% of the task classes would find their cluster without being part of it"
        )
    elif by_features and metrics.get("certainty", 100) < 100 * THIN:
        found = f"the labels have a probability of only {metrics['certainty']:.0f}% on average"
    elif quality.precision + 2 * quality.precision_error < THIN:
        found = (
            f"by what shares a cluster within tasks, only {metrics['pair_precision']:.0f}% ± "
            f"{metrics['pair_precision_error']:.0f}% of the pairs in one cluster are of one class"
        )
    elif metrics.get("expected_ari", 1) < POOR:
        found = (
            f"the adjusted Rand index between labels and true classes is expected to be {metrics['expected_ari']:.2f}"
        )
    else:
        return None
    objects = ", several objects of a class from each person" if labeler.effects_ is not None else ""
    advice = f"so expect many wrong labels; more tasks, more samples per class{objects} or a better embedding help"
    return f"thin evidence: {found}, {advice}"
