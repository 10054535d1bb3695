"""Assign task classes to clusters such that the classes of one task have different ones."""

from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from mela.data.array_types import Floats, Ints
from mela.labeling.centroids import nearest


def distinct(clusters: Ints, starts: Ints) -> npt.NDArray[np.bool_]:
    """Tell for each row (n,) whether all classes of its task have different clusters."""
    tasks = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    _, inverse, counts = np.unique(tasks * (clusters.max() + 1) + clusters, return_inverse=True, return_counts=True)
    collides = np.zeros(len(starts) - 1, dtype=np.bool_)
    collides[tasks[counts[inverse] > 1]] = True
    return ~collides[tasks]


Collisions = Literal["drop", "assign"]


def assign_tasks(points: Floats, starts: Ints, centers: Floats, collisions: Collisions) -> tuple[Ints, Ints]:
    """Return the clusters of task classes, with and without those of tasks whose classes collide.

    Parameters
    ----------
    points : float64 (n, m)
        Task classes.
    starts : int64 (n_tasks + 1,)
        Task t holds the rows ``starts[t]`` to ``starts[t + 1] - 1``.
    centers : float64 (n_clusters, m)
        At least as many as a task has classes if `collisions` is "assign".
    collisions : {"drop", "assign"}
        What becomes of a task two of whose classes have the same nearest center. It is dropped, or its classes get
        different clusters with the smallest sum of squared distances (the Hungarian method, by scipy).

    Returns
    -------
    clusters : int64 (n,)
        Nearest centers, or those that "assign" has chosen instead.
    labels : int64 (n,)
        The same, but -1 for all classes of a dropped task.
    """
    return settle_collisions(nearest(points, centers), points, starts, centers, collisions)


def settle_collisions(
    clusters: Ints, points: Floats, starts: Ints, centers: Floats, collisions: Collisions
) -> tuple[Ints, Ints]:
    """Do as `assign_tasks`, given the nearest center (n,) of each task class, which is not changed."""
    fine = distinct(clusters, starts)
    if collisions == "drop":
        return clusters, np.where(fine, clusters, -1)
    clusters = clusters.copy()
    for task in np.flatnonzero(~fine[starts[:-1]]):
        own = slice(starts[task], starts[task + 1])
        clusters[own] = _best_matching(points[own], centers)
    return clusters, clusters.copy()


def _best_matching(points: Floats, centers: Floats) -> Ints:
    distances = ((points[:, None] - centers[None]) ** 2).sum(axis=2)
    chosen: Ints = linear_sum_assignment(distances)[1].astype(np.int64)
    return chosen
