"""Greedy merging of clusters that share the shape of their noise."""

import numpy as np
import numpy.typing as npt

from mela.class_sizes import log_sizes, one_fewer
from mela.clusters import Clusters, Merges, meeting_odds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST_ODDS = -20.0


def marginal(weights: Floats, sums: Floats, between: Floats) -> Floats:
    r"""Log marginal likelihood (k,) of clusters, without what all partitions share.

    .. math:: \tfrac12 \sum_i \frac{b_i s_i^2}{1 + N b_i} - \log(1 + N b_i)
    """
    # in place: fresh memory for each step would take longer than the arithmetic
    scale = weights[:, None] * between
    scale += 1
    terms = sums * sums
    terms *= between
    terms /= scale
    terms -= np.log(scale, out=scale)
    return terms.sum(axis=1) / 2


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
    n_items = int(clusters.counts.sum())
    sizes, fewer = log_sizes(np.arange(2 * n_items + 1), gamma), one_fewer(n, n_items, gamma)

    def together(u: int, others: slice | Ints) -> Floats:
        return marginal(
            clusters.weights[u] + clusters.weights[others], clusters.sums[u] + clusters.sums[others], between
        )

    def gained(u: int, others: slice | Ints, joint: Floats) -> Floats:
        own, counts = clusters.counts[u], clusters.counts[others]
        odds = joint - alone[u] - alone[others] + size(own + counts) - size(own) - size(counts)
        odds += meeting_odds(clusters.meetings[u, others], own, counts, rate)
        return odds

    def size(counts: Floats) -> Floats:
        return sizes[counts.astype(np.int64)]

    odds = np.zeros((n, n))
    for u in range(n):
        odds[u, u + 1 :] = together(u, slice(u + 1, None))
    odds += odds.T
    for u in range(n):
        odds[u] = gained(u, slice(None), odds[u])
    np.fill_diagonal(odds, -np.inf)
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
        others = np.flatnonzero(alive)
        changed = np.full(n, -np.inf)
        changed[others] = gained(u, others, together(u, others))
        changed[u] = -np.inf
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
