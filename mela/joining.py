"""The second round of merging: pure clusters, each with its own covariance."""

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from mela.class_sizes import log_sizes, one_fewer
from mela.clusters import Clusters, Merges, meeting_odds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

NEIGHBOURS = 15
REFUSED = 10


def join(clusters: Clusters, scatter: Floats, degrees: Floats, between: Floats, rate: float, gamma: float) -> Merges:
    r"""Second round: merge pure clusters by the odds with their own covariances.

    With :math:`A = P (1 / N_u + 1 / N_v)` for the common covariance P of two clusters, shrunk towards the average one
    with the weight of d samples, their difference is normal with covariance A if they are one class, and A + 2 diag(b)
    if not.

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
        See `mela.class_sizes`.

    Returns
    -------
    list of (u, v, odds)
        Cluster v went into u; merges are worth it up to the first whose odds are at most 0, and some after it show by
        how much the rest are not.
    """
    k, d = clusters.sums.shape
    alive = np.ones(k, dtype=bool)
    sizes, fewer = log_sizes(clusters.counts, gamma), one_fewer(k, int(clusters.counts.sum()), gamma)
    apart = np.diag(2 * between)

    def odds(u: int, others: Ints) -> Floats:
        common = scatter[u] + scatter[others] + d * np.eye(d)
        common /= (degrees[u] + degrees[others] + d)[:, None, None]
        together = common * (1 / clusters.weights[u] + 1 / clusters.weights[others])[:, None, None]
        difference = (clusters.sums[u] / clusters.weights[u])[None] - clusters.sums[others] / clusters.weights[
            others, None
        ]
        counts = clusters.counts
        value = _log_normal(difference, together) - _log_normal(difference, together + apart)
        value += log_sizes(counts[u] + counts[others], gamma) - sizes[u] - sizes[others]
        # so few samples leave directions in which nothing was seen: the first round's verdict stands
        value[degrees[u] + degrees[others] <= d] = -np.inf
        return value + meeting_odds(clusters.meetings[u, others], counts[u], counts[others], rate)

    best, partner = np.full(k, -np.inf), np.zeros(k, dtype=np.int64)

    def look(u: int) -> None:
        centers = clusters.sums / clusters.weights[:, None]
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
        scatter[u] += scatter[v]
        degrees[u] += degrees[v]
        alive[v], best[v] = False, -np.inf
        for w in np.flatnonzero(alive & ((partner == u) | (partner == v))):
            look(int(w))
        look(u)


def _log_normal(differences: Floats, covariances: Floats) -> Floats:
    factors = np.linalg.cholesky(covariances)
    whitened = [
        solve_triangular(factor, difference, lower=True, check_finite=False)
        for factor, difference in zip(factors, differences, strict=True)
    ]
    volumes = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return -(np.stack(whitened) ** 2).sum(axis=1) / 2 - volumes
