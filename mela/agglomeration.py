"""Greedy merging of clusters that share the shape of their noise."""

import numpy as np
import numpy.typing as npt

from mela.class_sizes import log_sizes, one_fewer
from mela.clusters import Clusters, Merges, meeting_odds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST_ODDS = -20.0
# pairs at a time, so that what lies between stays in the processor's cache
BLOCK = 128


def marginal(weights: Floats, sums: Floats, between: Floats) -> Floats:
    r"""Log marginal likelihood (k,) of clusters, without what all partitions share.

    .. math:: \tfrac12 \sum_i \frac{b_i s_i^2}{1 + N b_i} - \log(1 + N b_i)
    """
    scale = 1 + weights[:, None] * between
    return ((between * sums**2 / scale) - np.log(scale)).sum(axis=1) / 2


def agglomerate(clusters: Clusters, between: Floats, rate: float, gamma: float) -> Merges:
    """Merge greedily, the pair with the largest log odds for one class first, while these are not hopeless.

    Parameters
    ----------
    clusters : Clusters
        Changed.
    between : float64 (d,)
    rate : float
        See `mela.clusters.meeting_odds`.
    gamma : float
        See `mela.class_sizes`.

    Returns
    -------
    list of (u, v, odds)
        Cluster v went into u.
    """
    n = len(clusters.weights)
    alive = np.ones(n, dtype=bool)
    alone = marginal(clusters.weights, clusters.sums, between)
    sizes, fewer = log_sizes(clusters.counts, gamma), one_fewer(n, int(clusters.counts.sum()), gamma)

    def joint(u: int, others: Ints) -> Floats:
        found = np.empty(len(others))
        for start in range(0, len(others), BLOCK):
            some = others[start : start + BLOCK]
            found[start : start + BLOCK] = marginal(
                clusters.weights[u] + clusters.weights[some], clusters.sums[u] + clusters.sums[some], between
            )
        return found

    def row(u: int, together: Floats) -> Floats:
        odds = together - alone[u] - alone + log_sizes(clusters.counts[u] + clusters.counts, gamma) - sizes[u] - sizes
        odds += meeting_odds(clusters.meetings[u], clusters.counts[u], clusters.counts, rate)
        odds[~alive] = -np.inf
        odds[u] = -np.inf
        return odds

    odds = np.empty((n, n))
    for u in range(n):
        odds[u, u:] = joint(u, np.arange(u, n))
        odds[u:, u] = odds[u, u:]
    for u in range(n):
        odds[u] = row(u, odds[u])
    partner = odds.argmax(axis=1)
    best = odds[np.arange(n), partner]
    merges: Merges = []
    while len(merges) < n - 1:
        u = int(best.argmax())
        total = float(best[u] + fewer[len(merges)])
        if total <= LEAST_ODDS:
            break
        v = int(partner[u])
        merges.append((u, v, total))
        clusters.absorb(u, v)
        alive[v] = False
        odds[v], odds[:, v], best[v] = -np.inf, -np.inf, -np.inf
        alone[u] = marginal(clusters.weights[u : u + 1], clusters.sums[u : u + 1], between)[0]
        sizes[u] = log_sizes(clusters.counts[u : u + 1], gamma)[0]
        together = np.zeros(n)
        together[alive] = joint(u, np.flatnonzero(alive))
        changed = row(u, together)
        odds[u], odds[:, u] = changed, changed
        stale = alive & ((partner == u) | (partner == v))
        closer = alive & (changed > best)
        closer[u] = False
        partner[closer], best[closer] = u, changed[closer]
        stale &= ~closer
        stale[u] = True
        for w in np.flatnonzero(stale):
            partner[w] = odds[w].argmax()
            best[w] = odds[w, partner[w]]
    return merges


def most_probable(merges: Merges) -> int:
    """How many of the merges make the most probable partition; the sum of their odds can have several peaks."""
    return int(np.concatenate([[0], np.cumsum([odds for _, _, odds in merges])]).argmax())
