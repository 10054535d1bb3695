"""Merge clusters of task classes, and weigh how often two of them have met in tasks."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mela.data.array_types import Floats, Ints

Merges = list[tuple[int, int, float]]

WRONG_MEETINGS = 0.01
BLOCK = 16_384


@dataclass
class Clusters:
    """Hold clusters as sums over their task classes, so that merging adds rows.

    Attributes
    ----------
    weights : float64 (k,)
        Precision, in task classes of average size and noise.
    sums : float64 (k, d)
        Coordinates times weights.
    counts : float64 (k,)
        Task classes.
    meetings : float32 (k, k)
        Tasks in which two clusters were matched by different local classes.
    """

    weights: Floats
    sums: Floats
    counts: Floats
    meetings: npt.NDArray[np.float32]

    def absorb(self, u: int, v: int) -> None:
        """Add cluster v to cluster u; row v is no longer valid."""
        self.weights[u] += self.weights[v]
        self.sums[u] += self.sums[v]
        self.counts[u] += self.counts[v]
        self.meetings[u] += self.meetings[v]
        self.meetings[:, u] = self.meetings[u]
        self.meetings[u, u] = 0


def weighted_sums(
    clusters: Ints, points: Floats, weights: npt.NDArray[np.number], k: int | None = None
) -> tuple[Floats, Floats]:
    """Return each cluster's weight (k,) and weighted sum (k, d) of its points (n, d); cluster -1 is left out."""
    used, k = clusters >= 0, int(clusters.max()) + 1 if k is None else k
    sums = np.zeros((k, points.shape[1]))
    # by parts, since the products would take as much memory as the points
    for start in range(0, len(clusters), BLOCK):
        rows = start + np.flatnonzero(used[start : start + BLOCK])
        np.add.at(sums, clusters[rows], points[rows] * weights[rows, None])
    return np.bincount(clusters[used], weights[used], k).astype(np.float64), sums


def cluster_means(clusters: Ints, points: Floats, k: int | None = None) -> tuple[Floats, Floats]:
    """Return the number (k,) and the mean (k, d) of each cluster's points (n, d); cluster -1 is left out.

    A cluster without points, as there may be if `k` is given, has a mean of 0.
    """
    counts, sums = weighted_sums(clusters, points, np.ones(len(points)), k)
    return counts, sums / np.maximum(counts, 1)[:, None]


def of_sources(clusters: Ints, sources: Ints) -> tuple[Ints, Ints]:
    """Divide clusters by the sources of their task classes.

    Parameters
    ----------
    clusters, sources : int64 (n,)
        Of task classes, from 0; each one of cluster -1 is a part of its own.

    Returns
    -------
    of : int64 (n_parts,)
        Source of each part; parts of a source are adjacent, and sources rise.
    parts : int64 (n,)
        Part of each task class, from 0.
    """
    known = np.where(clusters >= 0, clusters, clusters.max() + 1 + np.arange(len(clusters)))
    found, parts = np.unique(np.stack([sources, known], axis=1), axis=0, return_inverse=True)
    return found[:, 0], parts.ravel()


def renumbered(clusters: Ints) -> Ints:
    """Return clusters (n,) numbered from 0 without gaps, in the same order; -1 stays."""
    used, found = clusters >= 0, np.full(len(clusters), -1, dtype=np.int64)
    found[used] = np.unique(clusters[used], return_inverse=True)[1]
    return found


def collect(clusters: Ints, points: Floats, weights: Floats, starts: Ints) -> Clusters:
    """Return the clusters of points (n, d) with weights (n,) in tasks with the bounds `starts`; -1 is left out."""
    totals, sums = weighted_sums(clusters, points, weights)
    return Clusters(
        weights=totals,
        sums=sums,
        counts=np.bincount(clusters[clusters >= 0], minlength=len(totals)).astype(np.float64),
        meetings=meetings(clusters, starts, len(totals)),
    )


def meetings(clusters: Ints, starts: Ints, n_clusters: int) -> npt.NDArray[np.float32]:
    """Count the tasks in which two clusters meet (n_clusters, n_clusters); -1 among `clusters` (n,) is left out."""
    met = np.zeros((n_clusters, n_clusters), dtype=np.float32)
    for start, end in pairwise(starts):
        own = clusters[start:end]
        own = own[own >= 0]
        met[own[:, None], own[None, :]] += 1
    np.fill_diagonal(met, 0)
    return met


def meeting_rate(starts: Ints) -> float:
    """Return the share of ordered pairs of task classes in one task, for the bounds (n_tasks + 1,) of all tasks."""
    ways = np.diff(starts)
    return float((ways * (ways - 1)).sum()) / int(starts[-1]) ** 2


def meeting_odds(
    met: npt.NDArray[np.float32], count: float, counts: Floats, rate: float, wrong: float = WRONG_MEETINGS
) -> Floats:
    r"""Return the log odds for one class from the meetings, :math:`E (1 - \epsilon) - M \log(1 / \epsilon)`.

    Of two classes, M is Poisson with mean :math:`E = N_u N_v \cdot` rate, where rate is the share of all pairs of task
    classes that lie in one task, :math:`\sum_t K_t (K_t - 1) / n^2` for tasks of :math:`K_t` ways and n task classes
    (:math:`(K - 1) / (K T)` for T tasks of K ways). Of one class, the mean is :math:`\epsilon E`, since now and then an
    assignment is wrong.
    """
    return count * counts * rate * (1 - wrong) - met * np.log(1 / wrong)


def cut(n: int, merges: Merges) -> Ints:
    """Return the cluster (n,) of each of n items after the merges, numbered from 0."""
    parents = np.arange(n)
    for u, v, _ in merges:
        parents[v] = u
    roots = parents[parents]
    while (roots != parents).any():
        parents, roots = roots, roots[roots]
    return np.unique(roots, return_inverse=True)[1].astype(np.int64)
