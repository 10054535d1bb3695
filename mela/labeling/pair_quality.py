r"""Judge clusters of task classes without any ground truth.

Two classes of one task are different classes, whatever they are: pairs within tasks are known to be wrong where they
share a cluster. Let a be the share of such pairs that do, and b that of all pairs of task classes. If tasks draw their
classes independently of each other, a wrong pair shares a cluster just as often within a task as anywhere. With s for
the share of all pairs that are right, which belongs to the tasks and not to the clusters,

.. math:: b = s \, \text{recall} + (1 - s) \, a, \qquad \text{precision} = s \, \text{recall} / b
    = 1 - (1 - s) \, a / b .

s is unknown but small (one over the number of classes, if they are equally frequent): 1 - a / b is below the
precision, by less than s. Recall is known up to that factor, and so is

.. math:: \text{match} = \frac{b - a}{\sqrt{b}} = \sqrt{s} \cdot \sqrt{\frac{s}{b}} \, (\text{recall} - a) ,

the index of Fowlkes and Mallows (*A Method for Comparing Two Hierarchical Clusterings*, 1983), the root of precision
times recall, which is :math:`\sqrt{s / b} \, \text{recall}`, with recall less what chance gives: of
several clusterings of the same tasks, the one with the largest `match` is closest to the truth.

Both hold for clusters that ignore which classes met in tasks; clusters chosen to keep these apart score too high. Both
are too low if the classes of a task are more alike than those of different tasks.
"""

from dataclasses import dataclass

import numpy as np

from mela.data.array_types import Ints


@dataclass(frozen=True, kw_only=True)
class PairQuality:
    """Hold estimates of how well clusters agree with the unknown truth.

    Attributes
    ----------
    precision : float
        Estimated share of the pairs in one cluster that are of one class, at most 1; below 0 by chance only.
    precision_error : float
        Its standard error.
    match : float
        Proportional to the index of Fowlkes and Mallows, corrected for chance.
    match_error : float
        Its standard error.
    shared : float
        Share of all pairs that are in one cluster, b. Its root is the largest `match` that these clusters can have.
    """

    precision: float
    precision_error: float
    match: float
    match_error: float
    shared: float

    @classmethod
    def of(cls, wrong: float, known: int, shared: float) -> "PairQuality":
        """Return the quality of clusters, by what is counted.

        Standard errors treat the number of pairs within tasks that share a cluster as Poisson. One is added to it, so
        that the error is not zero where no pair does.

        Parameters
        ----------
        wrong, known : float, int
            Pairs inside tasks that share a cluster, of all these pairs.
        shared : float
            b.
        """
        if not shared:
            return cls(precision=1.0, precision_error=0.0, match=0.0, match_error=0.0, shared=0.0)
        within, error = wrong / known, float(np.sqrt(wrong + 1)) / known
        return cls(
            precision=1 - within / shared,
            precision_error=error / shared,
            match=float((shared - within) / np.sqrt(shared)),
            match_error=float(error / np.sqrt(shared)),
            shared=shared,
        )

    @classmethod
    def by_error(cls, error: float, known: int, shared: float) -> "PairQuality":
        """Return the quality of clusters by a / b, the error, as other clusters or tasks have shown it."""
        return cls.of(error * shared * known, known, shared)

    def beats(self, other: "PairQuality") -> bool:
        """Return whether `match` is larger by more than two standard errors of the difference."""
        return self.match - other.match > 2 * float(np.hypot(self.match_error, other.match_error))


def collisions(clusters: Ints, starts: Ints) -> int:
    """Count the pairs of classes of one task that share a cluster; -1 among clusters (n,) is none."""
    tasks = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    used = clusters >= 0
    together = np.unique(tasks[used] * (int(clusters.max()) + 1) + clusters[used], return_counts=True)[1]
    return int((together * (together - 1)).sum()) // 2


def pairs_inside(starts: Ints) -> Ints:
    """Return the pairs of classes inside each task (n_tasks,), whose bounds are ``starts``, int64 (n_tasks + 1,)."""
    ways = np.diff(starts)
    return ways * (ways - 1) // 2


def joined_share(clusters: Ints) -> float:
    """Return the share b of all pairs of task classes (n,) that are in one cluster; -1 is none."""
    n, sizes = len(clusters), np.bincount(clusters[clusters >= 0])
    joined = int((sizes * (sizes - 1)).sum()) // 2
    return joined / (n * (n - 1) / 2) if joined else 0.0


def pair_quality(clusters: Ints, starts: Ints) -> PairQuality:
    """Estimate precision and `match` of clusters (n,) of task classes, numbered from 0; what is left out has -1.

    Task t holds the rows ``starts[t]`` to ``starts[t + 1] - 1``.
    """
    return PairQuality.of(collisions(clusters, starts), int(pairs_inside(starts).sum()), joined_share(clusters))
