"""Merge clusters of task classes, and weigh how often two of them have met in tasks."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, triu

from mela.data.array_types import Floats, Ints

Merges = list[tuple[int, int, float]]

WRONG_MEETINGS = 0.01


class Meetings:
    """Hold in how many tasks two of k clusters were matched by different local classes.

    Parameters
    ----------
    table : csr_array (k, k)
        As `meetings` returns it.
    """

    def __init__(self, table: csr_array) -> None:
        both = csr_array(table + table.T)
        parts = pairwise(both.indptr.tolist())
        columns, counts = both.indices.tolist(), both.data.tolist()
        self._rows = [dict(zip(columns[start:end], counts[start:end], strict=True)) for start, end in parts]

    def with_all(self, u: int) -> Floats:
        """Return how often a cluster met each cluster (k,)."""
        found, own = np.zeros(len(self._rows)), self._rows[u]
        found[list(own)] = list(own.values())
        return found

    def with_some(self, u: int, others: Ints) -> Floats:
        """Return how often a cluster met some others (n,)."""
        own = self._rows[u]
        return np.array([own.get(v, 0.0) for v in others.tolist()])

    def absorb(self, u: int, v: int) -> None:
        """Count meetings of cluster v as those of cluster u, which has none with itself."""
        own = self._rows[u]
        for w, count in self._rows[v].items():
            others = self._rows[w]
            del others[v]
            if w != u:
                own[w] = others[u] = own.get(w, 0.0) + count
        self._rows[v] = {}


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
    meetings : Meetings
    """

    weights: Floats
    sums: Floats
    counts: Floats
    meetings: Meetings

    def absorb(self, u: int, v: int) -> None:
        """Add cluster v to cluster u; row v is no longer valid."""
        self.weights[u] += self.weights[v]
        self.sums[u] += self.sums[v]
        self.counts[u] += self.counts[v]
        self.meetings.absorb(u, v)


def weighted_sums(
    clusters: Ints, points: Floats, weights: npt.NDArray[np.number], k: int | None = None
) -> tuple[Floats, Floats]:
    """Return each cluster's weight (k,) and weighted sum (k, d) of its points (n, d); cluster -1 is left out."""
    rows, k = np.flatnonzero(clusters >= 0), int(clusters.max()) + 1 if k is None else k
    used = clusters[rows], weights[rows].astype(np.float64)
    table = csr_array((used[1], (used[0], rows)), shape=(k, len(clusters)))
    return np.bincount(*used, k).astype(np.float64), np.asarray(table @ points)


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
    found, parts = np.unique(np.stack([sources, by_themselves(clusters)], axis=1), axis=0, return_inverse=True)
    return found[:, 0], parts.ravel()


def by_themselves(clusters: Ints) -> Ints:
    """Return clusters (n,) in which each of cluster -1 has one of its own, above all others."""
    return np.where(clusters >= 0, clusters, clusters.max() + 1 + np.arange(len(clusters)))


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
        meetings=Meetings(meetings(clusters, starts, len(totals))),
    )


def meetings(clusters: Ints, starts: Ints, n_clusters: int) -> csr_array:
    """Count the tasks in which two clusters meet (n_clusters, n_clusters), above the diagonal.

    Those of -1 among `clusters` (n,) are left out. `starts` are the bounds of the tasks.
    """
    tasks, used = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), clusters >= 0
    present = csr_array((np.ones(used.sum()), (tasks[used], clusters[used])), shape=(len(starts) - 1, n_clusters))
    # a cluster that has two classes of a task meets others of it once
    present.data[:] = 1
    return csr_array(triu(present.T @ present, 1))


def meeting_rate(starts: Ints) -> float:
    """Return the share of ordered pairs of task classes in one task, for the bounds (n_tasks + 1,) of all tasks."""
    ways = np.diff(starts)
    return float((ways * (ways - 1)).sum()) / int(starts[-1]) ** 2


def meeting_odds(
    met: Floats, count: Floats | float, counts: Floats, rate: float, wrong: float = WRONG_MEETINGS
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
