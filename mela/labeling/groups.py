r"""Tell how probable it is that two groups of task classes are one class, and which groups may be.

Pairs inside tasks are different classes. Two groups of :math:`n_A` and :math:`n_B` task classes that are different
classes have :math:`E = n_A n_B \cdot` rate pairs inside tasks on average (`mela.labeling.clusters.meeting_odds`), and
groups of one class have next to none. So of all groups at a distance d, the ratio of their pairs inside tasks to E is
the share that are different classes. It is estimated by isotonic regression, since it can only rise with the distance.
The pairs inside tasks of the two groups themselves then change the odds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.isotonic import IsotonicRegression

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import cluster_means, meeting_odds, meeting_rate
from mela.labeling.links import Links

# steps of a tree above this height join task classes that may not be together
MOST = 2.5
# clusters next to each one that may be the same
NEAR = 10
# no question is certain before it is asked
LEAST = 1e-3


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Hold two groups of task classes (n,), (m,), which share a cluster or are clusters of their own."""

    one: Ints
    other: Ints
    joined: bool


def near_clusters(clusters: Ints, points: Floats) -> Iterator[Groups]:
    """Yield pairs of clusters that are near each other, for the clusters (n,) of points (n, d); -1 is none."""
    rows = members(clusters)
    centers = cluster_means(clusters, points)[1]
    squared = cdist(centers, centers, "sqeuclidean")
    np.fill_diagonal(squared, np.inf)
    near = np.argsort(squared, axis=1)[:, :NEAR]
    pairs = {(min(u, v), max(u, v)) for u in range(len(centers)) for v in near[u].tolist() if u != v}
    for u, v in sorted(pairs):
        yield Groups(one=rows[u], other=rows[v], joined=False)


def parts(clusters: Ints, points: Floats, links: Links, known: dict[bytes, Groups] | None = None) -> Iterator[Groups]:
    """Yield the two parts into which average linkage would divide each cluster; `known` keeps those of before."""
    none, known = np.empty((0, 2), dtype=np.int64), {} if known is None else known
    for rows in members(clusters):
        if len(rows) < 2:
            continue
        kinds = np.unique(links.components[rows], return_inverse=True)[1]
        key = rows.tobytes() + kinds.tobytes()
        if key not in known:
            tree = linked_tree(points[rows], kinds, none)
            part = _leaves(tree, int(tree[-1, 0]))
            known[key] = Groups(one=rows[part], other=np.delete(rows, part), joined=True)
        yield known[key]


def members(clusters: Ints) -> list[Ints]:
    """Return the task classes of each cluster, of those from 0; -1 is none."""
    order = np.argsort(clusters, kind="stable")
    order = order[clusters[order] >= 0]
    return np.split(order, np.cumsum(np.bincount(clusters[order]))[:-1])


def linked_tree(points: Floats, components: Ints, apart: Ints) -> Floats:
    """Return the tree (n - 1, 4) by which average linkage joins task classes, as scipy has it.

    Steps above `MOST` join some that may not be together.

    Parameters
    ----------
    points : float64 (n, d)
        Two or more.
    components : int64 (n,)
        Task classes that share a number stay together.
    apart : int64 (k, 2)
        Pairs that may not be together.
    """
    n, distances = len(points), pdist(points)
    # from 1 to 2, so that none is as small as that of task classes which stay together
    square = squareform(1 + distances / max(float(distances.max()), np.finfo(np.float64).tiny))
    square[components[:, None] == components] = 0
    # one forbidden pair makes any average larger than one over pairs that are all allowed
    square[apart[:, 0], apart[:, 1]] = square[apart[:, 1], apart[:, 0]] = MOST * n * n
    tree: Floats = linkage(squareform(square, checks=False), "average")
    return tree


@dataclass(frozen=True, kw_only=True)
class GroupOdds:
    """Tell the log odds for one class of two groups.

    Attributes
    ----------
    points : float64 (n, d)
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    wrong : float
        Share of wrong pairs in clusters, with which pairs inside tasks are weighed.
    regression : IsotonicRegression
        Share of different classes over the distance.
    """

    points: Floats
    starts: Ints
    wrong: float
    regression: IsotonicRegression

    @classmethod
    def of(cls, groups: Sequence[Groups], points: Floats, starts: Ints, wrong: float) -> "GroupOdds":
        """Return the odds that pairs inside tasks of these groups show."""
        regression = IsotonicRegression(y_min=LEAST, y_max=1 - LEAST, out_of_bounds="clip")
        found = cls(points=points, starts=starts, wrong=min(max(wrong, 0.01), 0.5), regression=regression)
        far, met, pairs = found._measured(groups)
        expected = pairs * meeting_rate(starts)
        if len(far) and expected.all():
            regression.fit(far, met / expected, sample_weight=expected)
        else:
            # without pairs inside tasks nothing tells
            regression.fit([0.0], [0.5])
        return found

    def same(self, groups: Sequence[Groups]) -> Floats:
        """Return the log odds for one class of the two groups of each of n (n,)."""
        far, met, pairs = self._measured(groups)
        return self._prior(far) + meeting_odds(met, 1.0, pairs, meeting_rate(self.starts), self.wrong)

    def homes(self, clusters: Ints, links: Links) -> Floats:
        """Return the probability (n, k) that a task class is of the class of a cluster.

        That of its own cluster is judged without it. What is missing to 1 is the probability of none of them. By
        Laplace's rule of succession, the odds of a cluster rise with each pair of its task classes that somebody says
        is one class.
        """
        k = int(clusters.max()) + 1
        sizes, centers = cluster_means(clusters, self.points, k)
        squares = cluster_means(clusters, self.points**2, k)[1]
        spread = np.maximum(squares - centers**2, 0).sum(axis=1)
        far = cdist(self.points, centers, "sqeuclidean") + spread
        rows = np.flatnonzero(clusters >= 0)
        own = clusters[rows]
        # the mean squared distance from the others of its cluster, since it is none from itself
        far[rows, own] *= sizes[own] / np.maximum(sizes[own] - 1, 1)
        odds = np.exp(self._prior(far.ravel())).reshape(far.shape)
        pairs = clusters[np.unique(np.sort(links.same, axis=1), axis=0)]
        within = pairs[(pairs[:, 0] == pairs[:, 1]) & (pairs[:, 0] >= 0), 0]
        odds[rows, own] *= (1 + np.bincount(within, minlength=k))[own]
        # nothing tells whether one that is alone is of its own class
        odds[rows, own] = np.where(sizes[own] > 1, odds[rows, own], 1.0)
        found: Floats = odds / (1 + odds.sum(axis=1, keepdims=True))
        return found

    @cached_property
    def tasks(self) -> Ints:
        """Task of each task class (n,)."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def _prior(self, far: Floats) -> Floats:
        """Return the log odds for one class of groups at some distances (n,)."""
        different = self.regression.predict(far)
        odds: Floats = np.log((1 - different) / different)
        return odds

    def _measured(self, groups: Sequence[Groups]) -> tuple[Floats, Floats, Floats]:
        """Return the mean squared distance of groups (n,), their pairs inside tasks, and all their pairs."""
        far, met = np.empty(len(groups)), np.empty(len(groups))
        known: dict[int, tuple[Floats, float, Ints]] = {}

        def about(rows: Ints) -> tuple[Floats, float, Ints]:
            # a cluster is in many groups, and is always the same array in them
            if id(rows) not in known:
                own = self.points[rows]
                counts = np.bincount(self.tasks[rows], minlength=len(self.starts))
                known[id(rows)] = own.mean(axis=0), float(own.var(axis=0).sum()), counts
            return known[id(rows)]

        for row, own in enumerate(groups):
            (center, spread, tasks), (other, more, others) = about(own.one), about(own.other)
            far[row] = ((center - other) ** 2).sum() + spread + more
            met[row] = tasks @ others
        return far, met, np.array([len(own.one) * len(own.other) for own in groups], dtype=np.float64)


def _leaves(tree: Floats, node: int) -> Ints:
    """Return the leaves below a node of a tree."""
    n, found, waiting = len(tree) + 1, [], [node]
    while waiting:
        top = waiting.pop()
        if top < n:
            found.append(top)
        else:
            waiting += tree[top - n, :2].astype(np.int64).tolist()
    return np.array(sorted(found), dtype=np.int64)
