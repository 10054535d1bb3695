"""Assign the labels of new tasks to the classes of a fitted labeler, or to none of these."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from mela.data.array_types import Floats, Ints
from mela.labeling.memberships import Memberships, MoreOdds
from mela.labeling.task_classes import ClassMeans, TaskSamples, class_means, with_written
from mela.labeling.task_labeler import TaskLabeler

NONE = -1
BLOCK = 1024


@dataclass(frozen=True, kw_only=True)
class Placed:
    """Hold the clusters of new tasks' labels.

    Attributes
    ----------
    clusters : int64 (n_task_classes,)
        Cluster of each label, -1 for none of them.
    certainty : float64 (n_task_classes,)
        Probability of that, given where the other labels of the task belong; NaN where no model gives one.
    """

    clusters: Ints
    certainty: Floats


def place(labeler: TaskLabeler, samples: TaskSamples, taken: Mapping[int, Iterable[int]] | None = None) -> Placed:
    """Place the labels of tasks among the classes of a fitted labeler.

    In each task, labels get the clusters that are jointly most probable, all different, where any label may be none of
    the clusters (`mela.labeling.memberships.Memberships.log_odds_or_none`). So no task is dropped, unlike in `predict`.

    Where names counted in the fit, what these people call their labels counts too, if somebody wrote it there.

    A labeler without the model behind soft labels cannot recognise labels of no cluster. Then the clusters are those of
    `predict`, and -1 stands for tasks whose labels collide or outnumber the clusters.

    Parameters
    ----------
    labeler : LearnLabeler or MergeLabeler
        Fitted with ``soft=True``, or read by `mela.labeling.labeler_files.load_labeler`.
    samples : TaskSamples
        Samples of tasks of any number of ways and shots.
    taken : mapping of int to iterable of int, optional
        Clusters that labels of a task must not get, by the number of the task: those of other labels of that person.
    """
    model, space = labeler.memberships_, labeler.space_
    classes, taken = class_means(samples), taken or {}
    forbidden = [np.array([*taken.get(task, ())], dtype=np.int64) for task in samples.task_ids[classes.starts[:-1]]]
    if model is None or space is None:
        return Placed(
            clusters=_predicted(labeler, samples, classes, forbidden), certainty=np.full(len(classes.sizes), np.nan)
        )
    points, weights = space.transform(labeler._means(classes)), classes.sizes / labeler.class_size_
    more = None if samples.written is None else labeler._told_by_words(samples.written.tolist(), len(model.weights))
    return place_by_model(model, points, weights, classes.starts, forbidden, more)


def place_by_model(
    model: Memberships,
    points: Floats,
    weights: Floats,
    starts: Ints,
    forbidden: Sequence[Ints] | None = None,
    more: MoreOdds | None = None,
) -> Placed:
    """Place task classes as `place` does, given their points (n, d) in the space of the model.

    Parameters
    ----------
    model : Memberships
    points : float64 (n, d)
    weights : float64 (n,)
        Samples of each over the average number.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    forbidden : sequence of int64 arrays (n_tasks), optional
        Clusters that labels of each task must not get.
    more : callable, optional
        What else is known of some task classes (b,), as log odds (b, k) of the clusters to none of them.
    """
    clusters, certainty = np.full(len(points), NONE, dtype=np.int64), np.empty(len(points))
    for tasks, rows in _blocks(starts):
        odds = model.log_odds_or_none(points[rows], weights[rows])
        if more is not None:
            odds[:, :-1] += more(np.arange(rows.start, rows.stop))
        for task in tasks:
            own = slice(starts[task], starts[task + 1])
            odds_of_task = odds[own.start - rows.start : own.stop - rows.start]
            if forbidden is not None:
                odds_of_task[:, forbidden[task]] = -np.inf
            clusters[own], certainty[own] = _place_task(odds_of_task)
    return Placed(clusters=clusters, certainty=certainty)


def _predicted(labeler: TaskLabeler, samples: TaskSamples, classes: ClassMeans, forbidden: Sequence[Ints]) -> Ints:
    """Return the clusters of task classes by `predict`; -1 marks unanswerable tasks and clusters not allowed."""
    clusters = np.full(len(classes.sizes), NONE, dtype=np.int64)
    answered = np.repeat(classes.ways <= len(labeler.cluster_centers_), classes.ways)
    used = answered[samples.classes]
    if used.any():
        own = samples.classes[used]
        found = labeler.predict(samples.features[samples.index[used]], samples.local_labels[own], samples.task_ids[own])
        clusters[own] = found
    for task, not_allowed in enumerate(forbidden):
        own_clusters = clusters[classes.starts[task] : classes.starts[task + 1]]
        own_clusters[np.isin(own_clusters, not_allowed)] = NONE
    return clusters


def place_labels(labeler: TaskLabeler, X: Any, y: Any, groups: Any, names: Any = None) -> pd.DataFrame:
    """Place the labels of tasks given by their samples, as for `predict` of a labeler.

    Parameters
    ----------
    labeler : LearnLabeler or MergeLabeler
        Fitted, and with ``soft=True`` if it shall tell labels that are none of its classes; see `place`.
    X : array-like (n_samples, n_features)
    y, groups : array-like (n_samples,)
        Label and task of each sample.
    names : array-like (n_samples,), optional
        What the person calls the class of each sample, as `mela.MergeLabeler.fit` takes it.

    Returns
    -------
    DataFrame
        Columns task, label, cluster and certainty, with a row for each label of each task.
    """
    samples = labeler._samples(X, y, groups, reset=False)
    if names is not None:
        samples = with_written(samples, names)
    placed = place(labeler, samples)
    columns = {"task": samples.task_ids, "label": samples.local_labels}
    return pd.DataFrame(columns | {"cluster": placed.clusters, "certainty": placed.certainty})


def _blocks(starts: Ints) -> Iterator[tuple[range, slice]]:
    """Yield some tasks at a time, and their rows: about a thousand, or those of one task."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + BLOCK, side="right")) - 1)
        yield range(first, last), slice(int(starts[first]), int(starts[last]))
        first = last


def _place_task(odds: Floats) -> tuple[Ints, Floats]:
    """Return the most probable clusters of a task's labels and their certainty, given log odds (ways, k + 1)."""
    ways, k = len(odds), odds.shape[1] - 1
    # none of the clusters may be taken by several labels, so each has a column of its own for it
    none = np.full((ways, ways), -np.inf)
    np.fill_diagonal(none, odds[:, k])
    lowest = min(float(odds.min()), 0.0)
    reach = float(odds.max()) - lowest + 1
    allowed = np.hstack([odds[:, :k], none])
    # a price that no matching pays, where infinity would be refused
    chosen = linear_sum_assignment(np.where(np.isfinite(allowed), allowed, lowest - ways * reach), maximize=True)[1]
    rows = np.arange(ways)
    taken = np.minimum(chosen, k)
    possible = odds.copy()
    used = taken[taken < k]
    possible[:, used] = -np.inf
    possible[rows, taken] = odds[rows, taken]
    certainty: Floats = np.exp(odds[rows, taken] - logsumexp(possible, axis=1))
    return np.where(taken < k, taken, NONE).astype(np.int64), certainty
