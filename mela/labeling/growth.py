"""Give the labels of new tasks to known classes or open new ones, without the samples that are known already.

1. Each task gets the clusters that are jointly most probable, where any label may be of none (`place` of
   `mela.labeling.unseen_tasks`).
2. Labels of none are merged among themselves, which opens clusters (`mela.labeling.partition`).
3. All labels of the new tasks move to their most probable clusters, in turns, while those of before stay where they
   are. A new cluster that loses all is not opened.

What is known of a cluster is the number, the weight and the sum of its task classes, which is all that its model needs
(`mela.labeling.memberships`). So a wrong cluster of before stays wrong, and a fit to all tasks may find better ones.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import meeting_rate
from mela.labeling.memberships import Memberships
from mela.labeling.merging import EVEN
from mela.labeling.partition import Evidence, refine
from mela.labeling.size_prior import evenness

Numbers = TypeVar("Numbers", Floats, Ints)

# moves end earlier where nothing moves any more
TURNS = 10


@dataclass(frozen=True, kw_only=True)
class Grown:
    """Hold clusters that have grown by new task classes.

    Attributes
    ----------
    clusters : int64 (n,)
        Of the new task classes; those from the known number on are new.
    model : Memberships
        Of all clusters.
    """

    clusters: Ints
    model: Memberships


def grow(model: Memberships, points: Floats, weights: Floats, starts: Ints, placed: Ints) -> Grown:
    """Add the task classes of new tasks to known clusters, or open new ones.

    Parameters
    ----------
    model : Memberships
        Of the known clusters.
    points : float64 (n, d)
        Of the new task classes, in the space of the model.
    weights : float64 (n,)
        Samples of each over the average number.
    starts : int64 (n_tasks + 1,)
        Bounds of the new tasks.
    placed : int64 (n,)
        Known cluster of each new task class, -1 for none of them.
    """
    known, found = len(model.weights), placed.copy()
    rows = np.flatnonzero(placed < 0)
    if len(rows):
        tasks = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[rows]
        bounds = np.concatenate([[0], np.flatnonzero(np.diff(tasks)) + 1, [len(rows)]])
        evidence = Evidence(
            points=points[rows], weights=weights[rows], starts=bounds, between=model.between, rate=meeting_rate(starts)
        )
        found[rows] = known + refine(evidence, evidence.merge(np.arange(len(rows)), EVEN)[0])[0]
    for _ in range(TURNS):
        again = _with(model, points, weights, found).best(points, weights, found, starts)
        if (again == found).all():
            break
        found = again
    fresh = found >= known
    found[fresh] = known + np.unique(found[fresh], return_inverse=True)[1]
    return Grown(clusters=found, model=_with(model, points, weights, found))


def _with(model: Memberships, points: Floats, weights: Floats, clusters: Ints) -> Memberships:
    """Return the model of clusters that these task classes (n,) have joined or opened."""
    k = max(len(model.weights), int(clusters.max()) + 1)
    counts = np.bincount(clusters, minlength=k) + more(model.counts, k)
    gamma = evenness(counts[counts > 0])
    own = Memberships.of(points, weights, clusters, k, model.between, gamma)
    return replace(
        own, weights=own.weights + more(model.weights, k), sums=own.sums + more(model.sums, k), counts=counts
    )


def more(values: Numbers, k: int) -> Numbers:
    """Return values (k, ...), of which those that are missing are 0."""
    return np.concatenate([values, np.zeros((k - len(values), *values.shape[1:]), values.dtype)])
