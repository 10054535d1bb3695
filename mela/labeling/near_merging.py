"""Merge clusters of very many task classes, of which only neighbours are compared.

`mela.labeling.merge_odds.agglomerate` compares all pairs, and merges the one with the largest odds at a time. Here each
cluster is compared with its nearest ones and with those of the clusters that went into it. Pairs that are each other's
best are merged at once, those with the larger half of their odds in a round, so that few clusters decide before they
have grown. Where no odds are favourable any more, neighbours are looked for again, among the centers of the clusters.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import Merges, meeting_odds, meetings, weighted_sums
from mela.labeling.merge_odds import LEAST_ODDS, marginal
from mela.labeling.mutual_pairs import joined_sums, mutual_pairs, numbers_after
from mela.labeling.nearest_points import nearest_points
from mela.labeling.size_prior import log_sizes, one_fewer

NEIGHBOURS = 20
# pairs whose odds are computed at once
BLOCK = 4096


def merge_neighbours(
    clusters: Ints,
    points: Floats,
    weights: Floats,
    starts: Ints,
    between: Floats,
    rate: float,
    gamma: float,
    least: int = 0,
) -> Merges:
    """Merge clusters as long as the odds of some neighbours are favourable.

    Parameters
    ----------
    clusters : int64 (n,)
        From 0; -1 is left out.
    points : float64 (n, d)
    weights : float64 (n,)
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    between, rate, gamma
        As `mela.labeling.merge_odds.agglomerate` takes them.
    least : int, default=0
        Stop when so many clusters are left.

    Returns
    -------
    list of (u, v, odds)
        Cluster v went into u. All odds are above 0.
    """
    state = _State.of(clusters, points, weights, starts)
    fewer = one_fewer(len(state.weights), int(state.counts.sum()), gamma)
    merges: Merges = []
    while True:
        before = len(merges)
        pairs = _Pairs.of(state)
        while True:
            pairs.weigh(state, between, rate, gamma)
            best = mutual_pairs(pairs.low, pairs.high, pairs.odds, len(state.weights))
            total = pairs.odds[best] + fewer[len(merges) : len(merges) + len(best)]
            some = total[: min(-(-len(best) // 2), len(state.weights) - least)] > 0
            best, total = best[: len(some)][some], total[: len(some)][some]
            if not len(best):
                break
            u, v = pairs.low[best], pairs.high[best]
            merges += zip(state.names[u].tolist(), state.names[v].tolist(), total.tolist(), strict=True)
            pairs.follow(state.merge(u, v), u, v)
        if len(merges) == before or len(state.weights) <= max(least, 2):
            return merges


@dataclass
class _State:
    """Hold k clusters that are left, as `mela.labeling.clusters.Clusters` does, and the number each had at first."""

    names: Ints
    weights: Floats
    sums: Floats
    counts: Floats
    met: csr_array

    @classmethod
    def of(cls, clusters: Ints, points: Floats, weights: Floats, starts: Ints) -> "_State":
        totals, sums = weighted_sums(clusters, points, weights)
        k = len(totals)
        counts = np.bincount(clusters[clusters >= 0], minlength=k).astype(np.float64)
        return cls(names=np.arange(k), weights=totals, sums=sums, counts=counts, met=meetings(clusters, starts, k))

    def merge(self, u: Ints, v: Ints) -> Ints:
        """Add clusters v to clusters u, all different, and return the new number (k,) of each."""
        for values in (self.weights, self.sums, self.counts):
            values[u] += values[v]
        number = numbers_after(len(self.weights), u, v)
        self.names, self.weights = np.delete(self.names, v), np.delete(self.weights, v)
        self.sums, self.counts = np.delete(self.sums, v, axis=0), np.delete(self.counts, v)
        self.met = joined_sums(self.met, number)
        return number


@dataclass
class _Pairs:
    """Hold pairs low < high of clusters that are compared, and their log odds without what one cluster fewer adds."""

    low: Ints
    high: Ints
    odds: Floats

    @classmethod
    def of(cls, state: _State) -> "_Pairs":
        k = len(state.weights)
        near = nearest_points(state.sums / state.weights[:, None], min(NEIGHBOURS, k - 1))
        low, high = _unique(np.repeat(np.arange(k), near.shape[1]), near.ravel(), k)[0]
        return cls(low, high, np.full(len(low), np.nan))

    def weigh(self, state: _State, between: Floats, rate: float, gamma: float) -> None:
        """Compute the odds that are not known, and leave out pairs that are hopeless."""
        alone, sizes = marginal(state.weights, state.sums, between), log_sizes(state.counts, gamma)
        asked = np.flatnonzero(np.isnan(self.odds))
        met = np.asarray(state.met[self.low[asked], self.high[asked]]).reshape(-1)
        for start in range(0, len(asked), BLOCK):
            some = asked[start : start + BLOCK]
            u, v = self.low[some], self.high[some]
            odds = marginal(state.weights[u] + state.weights[v], state.sums[u] + state.sums[v], between)
            odds += log_sizes(state.counts[u] + state.counts[v], gamma) - alone[u] - alone[v] - sizes[u] - sizes[v]
            odds += meeting_odds(met[start : start + BLOCK], state.counts[u], state.counts[v], rate)
            self.odds[some] = odds
        self._keep(self.odds > LEAST_ODDS)

    def follow(self, number: Ints, u: Ints, v: Ints) -> None:
        """Go on with new numbers of clusters after v went into u; odds of those that have grown are not known."""
        grown = np.zeros(len(number), dtype=np.bool_)
        grown[u], grown[v] = True, True
        self.odds[grown[self.low] | grown[self.high]] = np.nan
        (self.low, self.high), kept = _unique(number[self.low], number[self.high], int(number.max()) + 1)
        self.odds = self.odds[kept]

    def _keep(self, kept: npt.NDArray[np.bool_]) -> None:
        self.low, self.high, self.odds = self.low[kept], self.high[kept], self.odds[kept]


def _unique(one: Ints, other: Ints, k: int) -> tuple[tuple[Ints, Ints], Ints]:
    """Return the different pairs low < high of k clusters, and where each was first."""
    apart = np.flatnonzero(one != other)
    one, other = one[apart], other[apart]
    keys, first = np.unique(np.minimum(one, other) * k + np.maximum(one, other), return_index=True)
    return (keys // k, keys % k), apart[first]
