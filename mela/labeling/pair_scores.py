r"""Compare the distance of two task classes with those of all other pairs of the same two tasks.

Two people with like cameras have images that are alike, whatever these show. The images of one person are more alike
still, so that pairs inside tasks would judge clusters too badly. Speaker verification has the same trouble: the scores
of two recordings depend on their microphones. There scores are normalised by those of other pairs of the same
recordings (Auckenthaler, Carey and Lloyd-Thomas, "Score normalization for text-independent speaker verification
systems", 2000). Here the squared distance d of two task classes becomes

.. math:: z = (d - m) / s ,

where m and s are the mean and the standard deviation that the other pairs of the same two tasks lead one to expect. All
but a few of these pairs are of different classes. Inside a task, all are.

Tasks of few classes have few pairs. So m is the best linear predictor of a random effect: the mean of the other pairs,
drawn towards the mean over all tasks. The variance :math:`s^2` is drawn towards that of all tasks as if it rested on
:math:`\nu` pairs more, where :math:`\nu` is estimated from how much the variances differ (Smyth, "Linear models and
empirical Bayes methods for assessing differential expression in microarray experiments", 2004). Pairs inside tasks and
those of different tasks have means and variances of their own.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import digamma, polygamma

from mela.data.array_types import Floats, Ints

# points whose distances to all others are computed at once
BLOCK = 512
# pairs whose differences are computed at once
PAIRS = 8192
# pairs beyond which the common variance is as good as certain
CERTAIN = 1e6


class Distances(Protocol):
    """Tell how far apart n points are; what a point is from itself means nothing."""

    @property
    def n(self) -> int:
        """Number of points."""

    def of(self, rows: Ints) -> Floats:
        """Return the distances (r, n) of some points (r,) to all."""

    def between(self, first: Ints, second: Ints) -> Floats:
        """Return the distances (p,) of some pairs (p,), (p,)."""

    def lowest(self, distances: Floats) -> Floats:
        """Return what counts as no distance (r,) in each row of distances (r, n); inf there stands for none."""


class SquaredDistances:
    """Tell the squared Euclidean distances between points (n, d)."""

    def __init__(self, points: Floats) -> None:
        self._points, self._lengths = points, (points**2).sum(axis=1)

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self._points)

    def of(self, rows: Ints) -> Floats:
        """Return the distances (r, n) of some points (r,) to all."""
        products = self._points[rows] @ self._points.T
        return np.maximum(self._lengths[rows, None] + self._lengths - 2 * products, 0)

    def between(self, first: Ints, second: Ints) -> Floats:
        """Return the distances (p,) of some pairs (p,), (p,)."""
        found = np.empty(len(first))
        # by parts, since the differences of all pairs would take far more memory than what they lead to
        for start in range(0, len(first), PAIRS):
            some = slice(start, start + PAIRS)
            found[some] = ((self._points[first[some]] - self._points[second[some]]) ** 2).sum(axis=1)
        return found

    def lowest(self, distances: Floats) -> Floats:
        """Return 0 (r,), whatever the distances (r, n) are."""
        return np.zeros(len(distances))


@dataclass(frozen=True, kw_only=True)
class PairScores:
    """Tell distances in units of what other pairs of the same two owners lead one to expect; smaller is closer.

    Attributes
    ----------
    distances : Distances
    owners : int64 (n,)
        Whose each point is, from 0: its task, or the source of its task.
    sums, freedom, spread : float64 (n_owners, n_owners)
        Of pairs of two owners: the sum of their distances; their number less 1, or 0; and their variance, drawn towards
        the common one.
    means, variances, between_owners : float64 (n_owners, n_owners)
        Inside owners and otherwise: mean distance, common variance, and the variance of means of owners.
    """

    distances: Distances
    owners: Ints
    sums: Floats
    freedom: Floats
    spread: Floats
    means: Floats
    variances: Floats
    between_owners: Floats

    @classmethod
    def of_owners(cls, distances: Distances, owners: Ints) -> "PairScores":
        """Return the scores that distances have if these are the owners (n,) of the points, from 0."""
        n_owners = int(owners.max()) + 1
        member = csr_array((np.ones(len(owners)), (owners, np.arange(len(owners)))), shape=(n_owners, len(owners)))
        sums, squares = np.zeros((n_owners, n_owners)), np.zeros((n_owners, n_owners))
        for rows in blocks(len(owners)):
            found, own = distances.of(rows), member[:, rows]
            found[np.arange(len(rows)), rows] = 0
            sums += np.asarray(own @ (member @ found.T).T)
            squares += np.asarray(own @ (member @ (found**2).T).T)
        sizes = np.bincount(owners, minlength=n_owners)
        pairs = np.outer(sizes, sizes).astype(np.float64)
        inside = np.eye(n_owners, dtype=np.bool_)
        # inside, sums have each pair twice
        pairs[inside] = sizes * (sizes - 1) / 2
        sums[inside] /= 2
        squares[inside] /= 2
        freedom = np.maximum(pairs - 1, 0)
        rests = np.where(pairs > 1, np.maximum(squares - sums**2 / np.maximum(pairs, 1), 0), 0.0)
        apart = np.triu_indices(n_owners, 1)
        strength = _strength(rests[apart], freedom[apart])
        means, variances, between_owners = (np.zeros((n_owners, n_owners)) for _ in range(3))
        for kind in (inside, ~inside):
            part = kind & (pairs > 0)
            if part.any():
                moments = _moments(sums[part], pairs[part], rests[part], freedom[part])
                means[kind], variances[kind], between_owners[kind] = moments
        return cls(
            distances=distances,
            owners=owners,
            sums=sums,
            freedom=freedom,
            spread=(rests + strength * variances) / (freedom + strength),
            means=means,
            variances=variances,
            between_owners=between_owners,
        )

    @property
    def n(self) -> int:
        """Number of points."""
        return self.distances.n

    def of(self, rows: Ints) -> Floats:
        """Return the scores (r, n) of some points (r,) to all."""
        return self._scores(self.distances.of(rows), np.ix_(self.owners[rows], self.owners))

    def between(self, first: Ints, second: Ints) -> Floats:
        """Return the scores (p,) of some pairs (p,), (p,)."""
        return self._scores(self.distances.between(first, second), (self.owners[first], self.owners[second]))

    def lowest(self, distances: Floats) -> Floats:
        """Return the smallest score of each row (r,), since scores may be negative."""
        return distances.min(axis=1)

    def _scores(self, found: Floats, at: tuple[Ints, ...]) -> Floats:
        """Return the scores of distances of the owners whose numbers are given."""
        others, between, means = self.freedom[at], self.between_owners[at], self.means[at]
        known = between * others
        weight = np.divide(known, known + self.variances[at], out=np.zeros_like(known), where=known > 0)
        others = np.maximum(others, 1)
        expected = means + weight * ((self.sums[at] - found) / others - means)
        # the pair varies about the mean of its owners, and that about what is expected of it
        variance = self.spread[at] * (1 + weight**2 / others) + between * (1 - weight) ** 2
        # where distances are all the same, none of them tells anything
        return np.divide(found - expected, np.sqrt(variance), out=np.zeros_like(found), where=variance > 0)


def blocks(n: int) -> list[Ints]:
    """Return the numbers of n points, some at a time."""
    return np.array_split(np.arange(n), range(BLOCK, n, BLOCK))


def _moments(sums: Floats, pairs: Floats, rests: Floats, freedom: Floats) -> tuple[float, float, float]:
    """Return the mean of all pairs, the variance about the means of owners, and that of these means themselves.

    Parameters
    ----------
    sums, pairs, rests, freedom : float64 (k,)
        Of each two owners: sum of distances, pairs, squared deviations from their mean, and pairs less 1.
    """
    mean, whole = float(sums.sum() / pairs.sum()), float(pairs.sum())
    of_owners = float((pairs * (sums / pairs - mean) ** 2).sum()) / whole
    if not freedom.any():
        # one pair each does not tell the two variances apart
        return mean, of_owners, 0.0
    variance = float(rests.sum() / freedom.sum())
    return mean, variance, max(0.0, of_owners - variance * len(pairs) / whole)


def _strength(rests: Floats, freedom: Floats) -> float:
    """Return as how many pairs the common variance counts, nu, for squared deviations (k,) and their freedom (k,)."""
    known = (rests > 0) & (freedom > 0)
    if known.sum() < 2:
        return CERTAIN
    half = freedom[known] / 2
    # logarithms of variances, less what chance adds to their mean
    logarithms = np.log(rests[known] / freedom[known]) - digamma(half) + np.log(half)
    more = float(logarithms.var() - polygamma(1, half).mean())
    # variances that differ by no more than chance are all the same
    if more <= polygamma(1, CERTAIN / 2):
        return CERTAIN
    return 2 * float(brentq(lambda half: polygamma(1, half) - more, 1e-6, CERTAIN / 2))
