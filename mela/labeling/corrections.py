r"""Change clusters of task classes as people's answers say.

An answer about two task classes is kept to exactly, and is evidence of their clusters:

1. A cluster with task classes that are not one class is divided. Its task classes are joined again by average linkage,
   but never two that are not one class. Clustering under such constraints is due to Wagstaff and Cardie ("Clustering
   with instance-level constraints", 2000), and its form for trees to Davidson and Ravi ("Agglomerative hierarchical
   clustering with constraints", 2005).
2. If task classes i and j of the clusters U and V are one class, either U and V are one class, or i or j is in the
   wrong cluster. The odds of both decide:

   .. math:: \frac{P(U = V)}{P(U \ne V)} \cdot \frac{w_{iU} w_{jV}}{w_{iV} + w_{jU}} ,

   where :math:`w_{iU}` is the probability that i is of the class of U. Both are those of `mela.labeling.groups`. If the
   odds are above 1, the clusters are joined. Otherwise the task classes that are one class leave one of the clusters,
   without the rest of it.

Clusters whose task classes somebody has told apart are never joined. The classes of one task differ, and where somebody
has named one of them, all of that task have different clusters.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.cluster.hierarchy import fcluster

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import renumbered
from mela.labeling.expected_ari import error_after, expected_ari
from mela.labeling.groups import MOST, GroupOdds, Groups, linked_tree, near_clusters, parts
from mela.labeling.links import Links
from mela.labeling.pair_quality import joined_share
from mela.labeling.space import unit_length


@dataclass(frozen=True, kw_only=True)
class Corrections:
    """Hold clusters of task classes that people may correct.

    Attributes
    ----------
    clusters : int64 (n,)
        From 0 without gaps; -1 for task classes without one.
    points : float64 (n, m)
        Task classes, of length 1, so that distances are those of angles.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    wrong : float
        Share of the pairs in one cluster that are wrong.
    error, same : float or None
        a / b and s of the clusters (`mela.labeling.expected_ari`); None where nothing tells them.
    """

    clusters: Ints
    points: Floats
    starts: Ints
    wrong: float
    error: float | None = None
    same: float | None = None

    @classmethod
    def of(
        cls, clusters: Ints, means: Floats, starts: Ints, wrong: float, error: float | None, same: float | None
    ) -> "Corrections":
        """Return clusters (n,) of task classes with these means (n, m), in tasks with these bounds (n_tasks + 1,).

        Whatever space the clusters were found in fits them too well to show which task classes are in a wrong one.
        """
        points = unit_length(means - means.mean(axis=0))
        clusters, error = renumbered(clusters), None if error is None else max(error, 0.0)
        return cls(clusters=clusters, points=points, starts=starts, wrong=wrong, error=error, same=same)

    @cached_property
    def divisions(self) -> dict[bytes, Groups]:
        """The parts of clusters that were found so far, since an answer changes few of them."""
        return {}

    def error_of(self, found: Ints) -> float | None:
        """Return a / b of clusters that `after` returned; None where nothing tells it."""
        if self.error is None or np.array_equal(found, self.clusters):
            return self.error
        return error_after(self.error, self.clusters, found)

    def expected_ari(self, found: Ints) -> float | None:
        """Return the expected adjusted Rand index of clusters that `after` returned; None where nothing tells it."""
        error = self.error_of(found)
        return None if error is None else expected_ari(joined_share(found), error, self.same)

    @cached_property
    def odds(self) -> GroupOdds:
        """The odds of groups for one class, as the clusters show them before anybody has corrected these."""
        nothing = Links.nothing(self.starts)
        groups = [*near_clusters(self.clusters, self.points), *parts(self.clusters, self.points, nothing)]
        return GroupOdds.of(groups, self.points, self.starts, self.wrong)

    def after(self, links: Links) -> Ints:
        """Return the clusters (n,) after what people say, from 0 without gaps, in the order of those before."""
        found = self.clusters.copy()
        self._place(found, links)
        self._divide(found, links)
        homes, before = self.odds.homes(found, links), found.copy()
        self._join(found, links, homes, before)
        _gather(found, links, homes, before)
        return renumbered(found)

    def _place(self, found: Ints, links: Links) -> None:
        """Give each label without a cluster, of tasks that are named, the best that no other label of its task has."""
        lost = np.flatnonzero((found < 0) & links.asked)
        if not len(lost):
            return
        if found.max() < 0:
            found[lost] = np.arange(len(lost))
            return
        homes = self.odds.homes(found, links)
        for row in lost:
            task = self.odds.tasks[row]
            taken = found[links.starts[task] : links.starts[task + 1]]
            free = homes[row].copy()
            free[taken[(taken >= 0) & (taken < len(free))]] = -1
            found[row] = free.argmax() if free.max() >= 0 else found.max() + 1

    def _divide(self, found: Ints, links: Links) -> None:
        """Divide the clusters that hold task classes which are not one class."""
        inside = links.apart[found[links.apart[:, 0]] == found[links.apart[:, 1]]]
        for cluster in np.unique(found[inside[:, 0]]):
            rows = np.flatnonzero(found == cluster)
            pairs = np.searchsorted(rows, inside[found[inside[:, 0]] == cluster])
            tree = linked_tree(self.points[rows], links.components[rows], pairs)
            part = fcluster(tree, MOST, "distance").astype(np.int64) - 1
            found[rows] = np.where(part > 0, found.max() + part, cluster)

    def _join(self, found: Ints, links: Links, homes: Floats, before: Ints) -> None:
        """Join clusters that are probably one class, since task classes of them are; `homes` is of those `before`."""
        for i, j in links.same:
            one, other = np.flatnonzero(found == found[i]), np.flatnonzero(found == found[j])
            if found[i] == found[j] or links.tell_apart(one, other):
                continue
            right = homes[i, before[i]] * homes[j, before[j]]
            wrong = homes[i, before[j]] + homes[j, before[i]]
            prior = self.odds.same([Groups(one=one, other=other, joined=False)])[0]
            if prior + np.log(right / wrong) > 0:
                found[other] = found[i]


def _gather(found: Ints, links: Links, homes: Floats, before: Ints) -> None:
    """Bring task classes that are one class into one cluster, without the rest of their clusters.

    Of their clusters, it is the one that they most probably belong to; `homes` (n, k) tells of the clusters `before`.
    """
    for component in np.unique(links.components[links.same[:, 0]]):
        rows = np.flatnonzero(links.components == component)
        clusters = np.unique(found[rows])
        if len(clusters) > 1:
            others = links.apart[:, ::-1][np.isin(links.apart, rows)]
            free = clusters[~np.isin(clusters, found[others])]
            # clusters that were joined stand for all of which they were made
            weights = [homes[rows][:, np.unique(before[found == cluster])].sum() for cluster in free]
            found[rows] = free[int(np.argmax(weights))] if len(free) else found.max() + 1
