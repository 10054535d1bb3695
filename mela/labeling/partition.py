"""Compute how probable a partition of task classes is, and improve it step by step."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import WRONG_MEETINGS, Merges, collect, cut, weighted_sums
from mela.labeling.memberships import Memberships
from mela.labeling.merge_odds import agglomerate, marginal, most_probable
from mela.labeling.name_odds import Names
from mela.labeling.near_merging import merge_neighbours
from mela.labeling.nearest_points import ALL_PAIRS
from mela.labeling.pair_quality import collisions
from mela.labeling.size_prior import evenness, log_number, log_sizes

WEIGHT_STEP = 0.1


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Hold task classes in a `mela.labeling.space.Space`.

    Partitions number their clusters from 0; -1 is for task classes that are left out.

    Attributes
    ----------
    points : float64 (n, d)
    weights : float64 (n,)
        Precision of the points.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    between : float64 (d,)
        Variance of the classes.
    rate : float
        See `mela.labeling.clusters.meeting_odds`.
    power : float, default=1
        Of the density of the points, which is too sure of itself where it is below 1.
    names : Names, optional
        What people call the task classes. Clusters are then at most 5,000.
    """

    points: Floats
    weights: Floats
    starts: Ints
    between: Floats
    rate: float
    power: float = 1.0
    names: Names | None = None

    def log_posterior(self, clusters: Ints) -> float:
        """Return the log posterior of a partition (n,), up to a constant, under the most probable evenness."""
        weights, sums = weighted_sums(clusters, self.points, self.weights)
        counts = np.bincount(clusters[clusters >= 0])
        gamma = evenness(counts)
        apart = float(log_number(len(counts), int(counts.sum()), gamma) + log_sizes(counts, gamma).sum())
        within = float((counts * (counts - 1) / 2).sum()) * self.rate * (1 - WRONG_MEETINGS)
        wrong = collisions(clusters, self.starts) * np.log(1 / WRONG_MEETINGS)
        named = 0.0 if self.names is None else self.names.log_evidence(clusters)
        return self.power * float(marginal(weights, sums, self.between).sum()) + apart + within - wrong + named

    def merge(self, clusters: Ints, gamma: float, *, least: int = 0) -> tuple[Ints, Merges, int]:
        """Return the most probable partition of greedy merging, all merges tried, and how many are made.

        More than 5,000 clusters are merged with neighbours only, and no further than to `least` clusters.
        """
        k = int(clusters.max()) + 1
        if k > ALL_PAIRS:
            own = self.points, self.weights, self.starts
            merges = merge_neighbours(clusters, *own, self.between, self.rate, gamma, least)
            return np.where(clusters >= 0, cut(k, merges)[clusters], -1), merges, len(merges)
        start = collect(clusters, self.points, self.weights, self.starts)
        names = None if self.names is None else self.names.counts(clusters, k)
        merges = agglomerate(start, self.between, self.rate, gamma, self.power, names)
        kept = most_probable(merges)
        merged = np.where(clusters >= 0, cut(len(start.weights), merges[:kept])[clusters], -1)
        return merged, merges, kept

    def reassign(self, clusters: Ints, gamma: float, near: Ints | None = None) -> tuple[Ints, Ints | None]:
        """Move the classes of every task to their most probable clusters, given the clusters of all others.

        Parameters
        ----------
        clusters : int64 (n,)
        gamma : float
        near : int64 (n, c), optional
            Of more than 5,000 clusters, those that a task class may move to; -1 is none. By default the nearest ones.

        Returns
        -------
        clusters : int64 (n,)
        near : int64 (n, c) or None
            The same by their new numbers; None if all clusters were compared.
        """
        k = int(clusters.max()) + 1
        model = replace(Memberships.of(self.points, self._rounded, clusters, k, self.between, gamma), power=self.power)
        more = None if self.names is None else self.names.of_others(clusters, k).log_ratios
        if near is None and k > ALL_PAIRS:
            near = model.nearest(self.points)
        found = model.best(self.points, self._rounded, clusters, self.starts, more, near)
        found = np.where(clusters >= 0, found, -1)
        # new numbers without gaps, by the old ones; there is none for what has vanished, and for -1
        numbers = np.full(k + 1, -1)
        used = np.unique(found[found >= 0])
        numbers[used] = np.arange(len(used))
        return numbers[found], None if near is None else numbers[near]

    @cached_property
    def _rounded(self) -> Floats:
        """Weights in logarithmic steps of a tenth, so that there are few different ones."""
        rounded: Floats = np.exp(np.round(np.log(self.weights) / WEIGHT_STEP) * WEIGHT_STEP)
        return rounded


def refine(evidence: Evidence, clusters: Ints) -> tuple[Ints, float]:
    """Reassign task classes and merge clusters, in turns, as long as the partition gets more probable.

    Early merges cannot be undone by merging; moving the classes of each task to their most probable clusters corrects
    them (iterated conditional modes; Besag, "On the Statistical Analysis of Dirty Pictures", 1986). All are moved at
    once, and a step that lowers the probability is not taken.

    Returns
    -------
    clusters : int64 (n,)
    gamma : float
        The evenness of their sizes.
    """
    score = evidence.log_posterior(clusters)
    while True:
        gamma = evenness(np.bincount(clusters[clusters >= 0]))
        moved, reached, near = clusters, score, None
        while True:
            again, near = evidence.reassign(moved, gamma, near)
            found = evidence.log_posterior(again)
            if found <= reached:
                break
            moved, reached = again, found
        moved, _, _ = evidence.merge(moved, gamma)
        reached = evidence.log_posterior(moved)
        if reached <= score:
            return clusters, gamma
        clusters, score = moved, reached
