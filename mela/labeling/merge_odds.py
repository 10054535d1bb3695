"""Merge clusters by their odds of being one class: the most probable pair first, or all that belong together."""

import numpy as np
from scipy.linalg.lapack import dtrtrs

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import Clusters, Merges, meeting_odds
from mela.labeling.name_odds import NameCounts
from mela.labeling.size_prior import log_sizes, one_fewer

LEAST_ODDS = -20.0
# pairs at a time, so that what lies between stays in the processor's cache
BLOCK = 128


def marginal(weights: Floats, sums: Floats, between: Floats) -> Floats:
    r"""Return the log marginal likelihood (k,) of clusters, without the term that all partitions share.

    .. math:: \tfrac12 \sum_i \frac{\beta_i r_i^2}{1 + N \beta_i} - \log(1 + N \beta_i)
    """
    scale = 1 + weights[:, None] * between
    return ((between * sums**2 / scale) - np.log(scale)).sum(axis=1) / 2


def agglomerate(
    clusters: Clusters,
    between: Floats,
    rate: float,
    gamma: float,
    power: float = 1.0,
    names: NameCounts | None = None,
) -> Merges:
    """Merge greedily, always the pair with the largest log odds for one class, until these are hopeless.

    Parameters
    ----------
    clusters : Clusters
        Changed.
    between : float64 (d,)
    rate : float
        See `mela.labeling.clusters.meeting_odds`.
    gamma : float
        See `mela.labeling.size_prior`.
    power : float, default=1
        Of the marginal likelihood of the points.
    names : NameCounts, optional
        What people call the task classes of the clusters; changed.

    Returns
    -------
    list of (u, v, odds)
        Cluster v went into u.
    """
    n = len(clusters.weights)
    alive = np.ones(n, dtype=bool)
    alone = power * marginal(clusters.weights, clusters.sums, between)
    sizes, fewer = log_sizes(clusters.counts, gamma), one_fewer(n, int(clusters.counts.sum()), gamma)

    def joint(u: int, others: Ints) -> Floats:
        found = np.empty(len(others))
        for start in range(0, len(others), BLOCK):
            some = others[start : start + BLOCK]
            found[start : start + BLOCK] = power * marginal(
                clusters.weights[u] + clusters.weights[some], clusters.sums[u] + clusters.sums[some], between
            )
        return found

    def row(u: int, together: Floats) -> Floats:
        odds = together - alone[u] - alone + log_sizes(clusters.counts[u] + clusters.counts, gamma) - sizes[u] - sizes
        odds += meeting_odds(clusters.meetings.with_all(u), clusters.counts[u], clusters.counts, rate)
        if names is not None:
            odds += names.with_all(u)
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
        if names is not None:
            names.absorb(u, v)
        alive[v] = False
        odds[v], odds[:, v], best[v] = -np.inf, -np.inf, -np.inf
        alone[u] = power * marginal(clusters.weights[u : u + 1], clusters.sums[u : u + 1], between)[0]
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
    """Return how many merges lead to the most probable partition; the sum of their odds can have several peaks."""
    return int(np.concatenate([[0], np.cumsum([odds for _, _, odds in merges])]).argmax())


NEIGHBOURS = 15
REFUSED = 10


def join(
    clusters: Clusters,
    scatter: Floats,
    degrees: Floats,
    between: Floats,
    rate: float,
    gamma: float,
    besides: tuple[int, int] = (0, 0),
) -> Merges:
    r"""Merge pure clusters by the odds with their own covariances: the second phase.

    With :math:`A = P (1 / N_u + 1 / N_v)` for the common covariance P of two clusters, shrunk towards the average one
    with the weight of d samples, their difference is normal with covariance A if they are one class, and
    A + 2 diag(beta) if not.

    Parameters
    ----------
    clusters : Clusters
        Weights in task classes of average size; changed.
    scatter : float64 (k, d, d)
        Sums of outer products of the samples' deviations; changed.
    degrees : float64 (k,)
        Their degrees of freedom; changed.
    between : float64 (d,)
    rate : float
        See `meeting_odds`.
    gamma : float
        See `mela.labeling.size_prior`.
    besides : (int, int), default=(0, 0)
        How many clusters there are besides these, and their task classes.

    Returns
    -------
    list of (u, v, odds)
        Cluster v went into u. Merges are favourable up to the first whose odds are at most 0; some after it show how
        unfavourable the rest are.
    """
    k, d = clusters.sums.shape
    alive = np.ones(k, dtype=bool)
    sizes = log_sizes(clusters.counts, gamma)
    fewer = one_fewer(k + besides[0], int(clusters.counts.sum()) + besides[1], gamma)
    apart = np.diag(2 * between)

    def odds(u: int, others: Ints) -> Floats:
        value = np.full(len(others), -np.inf)
        # so few samples leave directions in which nothing was seen: the verdict of the first phase stands
        seen = degrees[u] + degrees[others] > d
        if not seen.any():
            return value
        others = others[seen]
        common = scatter[u] + scatter[others] + d * np.eye(d)
        common /= (degrees[u] + degrees[others] + d)[:, None, None]
        together = common * (1 / clusters.weights[u] + 1 / clusters.weights[others])[:, None, None]
        difference = (clusters.sums[u] / clusters.weights[u])[None] - clusters.sums[others] / clusters.weights[
            others, None
        ]
        counts = clusters.counts
        found = _log_normal(difference, together) - _log_normal(difference, together + apart)
        found += log_sizes(counts[u] + counts[others], gamma) - sizes[u] - sizes[others]
        met = clusters.meetings.with_some(u, others)
        value[seen] = found + meeting_odds(met, counts[u], counts[others], rate)
        return value

    best, partner = np.full(k, -np.inf), np.zeros(k, dtype=np.int64)
    centers = clusters.sums / clusters.weights[:, None]

    def look(u: int) -> None:
        distances = ((centers - centers[u]) ** 2).sum(axis=1) - d * (1 / clusters.weights + 1 / clusters.weights[u])
        distances[~alive], distances[u] = np.inf, np.inf
        others = np.argsort(distances, kind="stable")[:NEIGHBOURS]
        others = others[np.isfinite(distances[others])]
        best[u] = -np.inf
        if len(others):
            values = odds(u, others)
            best[u], partner[u] = values.max(), others[int(values.argmax())]

    for u in range(k):
        look(u)
    merges: Merges = []
    while True:
        u = int(best.argmax())
        if np.isinf(best[u]) or sum(odds <= 0 for _, _, odds in merges[-REFUSED:]) == REFUSED:
            return merges
        v = int(partner[u])
        merges.append((u, v, float(best[u] + fewer[len(merges)])))
        clusters.absorb(u, v)
        sizes[u] = log_sizes(clusters.counts[u : u + 1], gamma)[0]
        centers[u] = clusters.sums[u] / clusters.weights[u]
        scatter[u] += scatter[v]
        degrees[u] += degrees[v]
        alive[v], best[v] = False, -np.inf
        for w in np.flatnonzero(alive & ((partner == u) | (partner == v))):
            look(int(w))
        look(u)


def _log_normal(differences: Floats, covariances: Floats) -> Floats:
    factors = np.linalg.cholesky(covariances)
    # LAPACK takes matrices column by column; what scipy.linalg.solve_triangular does beside this takes twice as long
    whitened = [
        dtrtrs(factor.T, difference, lower=0, trans=1)[0]
        for factor, difference in zip(factors, differences, strict=True)
    ]
    volumes = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return -(np.stack(whitened) ** 2).sum(axis=1) / 2 - volumes
