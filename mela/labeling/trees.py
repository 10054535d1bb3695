"""Find clusters of task classes by trees of the neighbours that they share, cut by the pairs inside tasks."""

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import NamedTuple, cast

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.sparse import csr_array

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import cluster_means
from mela.labeling.cuts import Cuts
from mela.labeling.near_trees import average_tree
from mela.labeling.nearest_points import ALL_PAIRS
from mela.labeling.neighbours import NEIGHBOURS, closeness_of_many, shared_neighbours
from mela.labeling.pair_quality import PairQuality, pair_quality
from mela.labeling.pair_scores import PairScores, SquaredDistances
from mela.labeling.space import space_of, unit_length

# views without looks
PLAIN = 3

# condensed distances, or 1 less those of fragments that share neighbours
Distances = Floats | csr_array


class Noise(NamedTuple):
    """Hold the covariance (m, m) of a task class about its class, and the degrees of freedom by which it is known."""

    covariance: Floats
    freedom: int


class Found(NamedTuple):
    """Hold distances between fragments, condensed, and what the cut of their tree with the largest `match` joins.

    Attributes
    ----------
    distances : float64 (n_fragments * (n_fragments - 1) / 2,)
        Of more than 5,000 fragments, 1 less their distance instead, as csr_array (n_fragments, n_fragments).
    cuts : Cuts
        Of the tree.
    clusters : int64 (n,)
        Of task classes, from 0; -1 as in fragments.
    quality : PairQuality
        Of the clusters.
    """

    distances: Distances
    cuts: Cuts
    clusters: Ints
    quality: PairQuality

    @property
    def finest(self) -> Ints:
        """Cluster of each task class (n,) after the finest cut whose `match` is within a standard error of the largest.

        Classification trees are pruned by such a rule (Breiman et al., "Classification and Regression Trees", 1984).
        """
        return self.cuts.clusters(self.cuts.finest(self.quality.match_error))

    def holds_better(self, other: "Found") -> bool:
        """Return whether `match` is larger by more than a standard error, as tasks judge it that chose neither cut."""
        error = float(np.hypot(self.quality.match_error, other.quality.match_error))
        return self.cuts.held_out() > other.cuts.held_out() + error


@dataclass(frozen=True, kw_only=True)
class TaskClasses:
    """Hold task classes whose clusters are to be found.

    Attributes
    ----------
    means : float64 (n, m)
    fragments : int64 (n,)
        Task classes that share a number stay together; -1 is left out.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    sources : int64 (n_tasks,), optional
        Source of each task, from 0; without, each task is one of its own.
    scored : bool, default=False
        Whether distances are replaced by `mela.labeling.pair_scores.PairScores`.
    """

    means: Floats
    fragments: Ints
    starts: Ints
    sources: Ints | None = None
    scored: bool = False

    def first(self, views: list[Distances]) -> Found:
        """Return what all views lead to together; or the two by angles as they are and with looks, if clearly better.

        Parameters
        ----------
        views : list of float64
            As `views` returns them.
        """
        found = self.judged(_mean(views))
        if len(views) <= PLAIN:
            return found
        of_looks = self.judged(_mean([views[0], views[-1]]))
        return of_looks if of_looks.quality.beats(found.quality) else found

    def with_scores(self) -> "TaskClasses | None":
        """Return the same with scores in place of distances.

        None where a fragment is of several tasks or sources, or there are more than 5,000, since a score needs all
        pairs of two owners.
        """
        many = int(self.fragments.max()) >= ALL_PAIRS
        return None if many or self._owners() is None else replace(self, scored=True)

    def again(self, found: Found, turn: int, noise: Noise) -> Found:
        """Return the clusters by distances in units of this noise as well, averaged with those of the turns before."""
        more = _mean(self.views([noise]))
        return self.judged(cast(Distances, found.distances + (more - found.distances) / (turn + 1)))

    def views(self, noise: list[Noise]) -> list[Distances]:
        """Return distances, condensed: by angle; in units of the first noise; and by angle in units of each noise."""
        scaled = [space_of(self.means, *known).transform(self.means) for known in noise]
        points = [unit_length(self.means - self.means.mean(axis=0)), scaled[0], *map(unit_length, scaled)]
        return [self._distances(own) for own in points]

    def _distances(self, points: Floats) -> Distances:
        """Return how far apart the fragments are at points of the task classes (n, d)."""
        count = NEIGHBOURS
        if self.sources is not None:
            # of a class there are as many versions as people who have it, and some have not
            count = min(count, (int(self.sources.max()) + 2) // 2)
        centers = cluster_means(self.fragments, points)[1]
        if len(centers) > ALL_PAIRS:
            return closeness_of_many(centers, count)
        squared = SquaredDistances(centers)
        owners = self._owners() if self.scored else None
        return shared_neighbours(squared if owners is None else PairScores.of_owners(squared, owners), count)

    @property
    def _of_tasks(self) -> Ints:
        """Source of each task (n_tasks,), from 0."""
        return np.arange(len(self.starts) - 1) if self.sources is None else self.sources

    def _owners(self) -> Ints | None:
        """Return the task, or if known the source, of each fragment, from 0; None where it is of several."""
        ways = np.diff(self.starts)
        whose = np.repeat(self._of_tasks, ways)
        used = self.fragments >= 0
        owners = np.zeros(int(self.fragments.max()) + 1, dtype=np.int64)
        owners[self.fragments[used]] = whose[used]
        return owners if (owners[self.fragments[used]] == whose[used]).all() else None

    def judged(self, distances: Distances) -> Found:
        """Return the clusters of that cut of the tree of these distances whose `match` is largest."""
        tree = average_tree(distances) if isinstance(distances, csr_array) else linkage(distances, "average")
        cuts = Cuts.of(tree, self.fragments, self.starts, self.sources)
        clusters = cuts.clusters(cuts.best())
        return Found(distances, cuts, clusters, pair_quality(clusters, self.starts))

    def some(self, tasks: Ints) -> "TaskClasses":
        """Return some of the tasks."""
        bounds = zip(self.starts[tasks], self.starts[tasks + 1], strict=True)
        rows = np.concatenate([np.arange(first, last) for first, last in bounds])
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[tasks])])
        used, fragments = np.unique(self.fragments[rows], return_inverse=True)
        own = fragments - int(used[0] < 0)
        sources = None if self.sources is None else np.unique(self.sources[tasks], return_inverse=True)[1]
        return replace(self, means=self.means[rows], fragments=own, starts=starts, sources=sources)

    def halves(self) -> list["TaskClasses"]:
        """Return the tasks of two halves of the sources, drawn at random; none where one half has no pairs in tasks."""
        sources = self._of_tasks
        order = np.random.default_rng(0).permutation(int(sources.max()) + 1)
        parts = [np.flatnonzero(np.isin(sources, half)) for half in np.array_split(order, 2)]
        halves = [self.some(part) for part in parts if len(part)]
        return halves if len(halves) == 2 and all((np.diff(half.starts) > 1).any() for half in halves) else []


def _mean(views: list[Distances]) -> Distances:
    # a stack of all views would take as much memory again
    return cast(Distances, reduce(add, views) / len(views))
