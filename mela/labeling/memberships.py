"""Model how much each task class belongs to each cluster: its posterior, given the clusters of all others."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, vstack
from scipy.special import softmax

from mela.data.array_types import Floats, Ints
from mela.labeling.assignment import distinct
from mela.labeling.clusters import weighted_sums
from mela.labeling.nearest_points import ALL_PAIRS, nearest_points
from mela.labeling.size_prior import log_number

BLOCK = 1024
# nearest clusters that are looked at where there are too many to look at all
NEAR = 10
LEAST = 1e-3
MoreOdds = Callable[[Ints], Floats]


@dataclass(frozen=True, kw_only=True)
class Memberships:
    r"""Model clusters as normal distributions whose means are known only so well.

    In a `mela.labeling.space.Space` a task class of weight w (its samples over the average number) lies around its
    class with variance 1 / w, and classes have variance beta. A cluster of total weight N and weighted sum r
    then expects a further one at

    .. math:: x \sim \mathcal N \left( \frac{r}{N + 1 / \beta}, \; \frac1w + \frac{1}{N + 1 / \beta} \right)

    in each direction, and expects it in proportion to its n task classes plus gamma (`mela.labeling.size_prior`). Where
    a task class is one of the n itself, it is taken out first; a cluster that holds no other has the prior's mean and
    the probability of a new class in place of n + gamma. These are the conditionals of a mixture of finite mixtures,
    the model of `mela.labeling.merging` (Miller and Harrison, "Mixture Models With a Prior on the Number of
    Components", 2018). The clusters of the other classes of a task are impossible.

    Attributes
    ----------
    between : float64 (d,)
        beta, variance of the classes in units of the noise.
    weights : float64 (k,)
    sums : float64 (k, d)
    counts : int64 (k,)
        Task classes of each cluster.
    gamma : float
    power : float, default=1
        Of the densities, which are too sure of themselves where it is below 1.
    """

    between: Floats
    weights: Floats
    sums: Floats
    counts: Ints
    gamma: float
    power: float = 1.0

    @classmethod
    def of(
        cls, points: Floats, weights: Floats, clusters: Ints, n_clusters: int, between: Floats, gamma: float
    ) -> "Memberships":
        """Model the clusters of task classes.

        Parameters
        ----------
        points : float64 (n, d)
        weights : float64 (n,)
            Samples of each task class over the average number.
        clusters : int64 (n,)
            Clusters from 0 to n_clusters - 1; -1 is left out.
        n_clusters : int
        between : float64 (d,)
        gamma : float
        """
        totals, sums = weighted_sums(clusters, points, weights, n_clusters)
        counts = np.bincount(clusters[clusters >= 0], minlength=n_clusters).astype(np.int64)
        return cls(between=between, weights=totals, sums=sums, counts=counts, gamma=gamma)

    @cached_property
    def novelty(self) -> float:
        """Value for a new class in place of n + gamma."""
        found, n = int((self.counts > 0).sum()), int(self.counts.sum())
        odds = log_number(found, n, self.gamma) - log_number(max(found - 1, 1), n, self.gamma)
        return self.gamma * float(np.exp(odds))

    def of_tasks(
        self,
        points: Floats,
        weights: Floats,
        clusters: Ints,
        starts: Ints,
        *,
        members: bool,
        more: MoreOdds | None = None,
    ) -> csr_array:
        """Return the posterior of the clusters for each task class (n, k); rows sum to 1, or to 0 for cluster -1.

        Entries below one in a thousand are left out.

        Parameters
        ----------
        points : float64 (n, d)
        weights : float64 (n,)
        clusters : int64 (n,)
            Clusters of the task classes; -1 for the tasks that were not clustered.
        starts : int64 (n_tasks + 1,)
            Bounds of the tasks.
        members : bool
            Whether these are the task classes that the clusters were made of.
        more : callable, optional
            What else is known of some task classes (b,), as log odds (b, k).
        """
        task, parts = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), []
        for start in range(0, len(points), BLOCK):
            rows = np.arange(start, min(start + BLOCK, len(points)))
            inside = np.flatnonzero(clusters[rows] >= 0)
            chosen, own = rows[inside], clusters[rows[inside]]
            odds = np.full((len(rows), len(self.weights)), -np.inf)
            if members:
                odds[inside] = self.member_log_odds(points[chosen], weights[chosen], own)
            else:
                odds[inside] = self.log_odds(points[chosen], weights[chosen])
            if more is not None:
                odds[inside] += more(chosen)
            kept = odds[inside, own].copy()
            for first, last in pairwise(starts[task[rows[0]] : task[rows[-1]] + 2]):
                others = clusters[first:last]
                here = slice(max(first - start, 0), last - start)
                odds[here, others[others >= 0]] = -np.inf
            odds[inside, own] = kept
            parts.append(_sparse(odds, inside))
        return vstack(parts, format="csr")

    def best(
        self,
        points: Floats,
        weights: Floats,
        clusters: Ints,
        starts: Ints,
        more: MoreOdds | None = None,
        near: Ints | None = None,
    ) -> Ints:
        """Return the most probable clusters (n,) of each task's classes, all different, given the other tasks.

        The task classes are those that the clusters were made of; -1 stays. If a task has more classes than there are
        clusters, each goes where it most probably belongs. Of more than 5,000 clusters a task class is compared with
        its own and with those of `near` (n, c) only, by default the nearest ones, and `more` is not asked.
        """

        def log_odds(rows: Ints) -> Floats:
            odds = self.member_log_odds(points[rows], weights[rows], clusters[rows])
            return odds if more is None else odds + more(rows)

        found = np.full(len(points), -1, dtype=np.int64)
        used = np.flatnonzero(clusters >= 0)
        if near is None and len(self.weights) > ALL_PAIRS:
            near = self.nearest(points)
        if near is not None:
            found[used] = self._best_near(points[used], weights[used], clusters[used], near[used])
        else:
            for weight in np.unique(weights[used]):
                rows = used[weights[used] == weight]
                for block in np.array_split(rows, -(-len(rows) // BLOCK)):
                    found[block] = log_odds(block).argmax(axis=1)
        fine = distinct(found, starts) | (clusters < 0)
        for task in np.flatnonzero(~fine[starts[:-1]] & (np.diff(starts) <= len(self.weights))):
            own = np.arange(starts[task], starts[task + 1])
            found[own] = linear_sum_assignment(-log_odds(own))[1]
        return found

    def member_log_odds(self, points: Floats, weights: Floats, clusters: Ints) -> Floats:
        """Return the log odds (n, k) of the clusters for task classes that these were made of, each without itself."""
        odds = self.log_odds(points, weights)
        odds[np.arange(len(points)), clusters] = self._own_log_odds(points, weights, clusters)
        return odds

    def log_odds(self, points: Floats, weights: Floats) -> Floats:
        """Return the log odds (n, k) of the clusters for task classes that these were not made of."""
        precision = self.weights[:, None] + 1 / self.between
        means = self.sums / precision
        odds = np.empty((len(points), len(means)))
        prior = np.log(np.where(self.counts > 0, self.counts + self.gamma, self.novelty))
        powers, half = np.hstack([points**2, points, np.ones((len(points), 1))]), self.power / 2
        for weight in np.unique(weights):
            rows = weights == weight
            variance = 1 / weight + 1 / precision
            # the square multiplied out, so that one product gives everything
            constants = prior - self.power * (means**2 / variance + np.log(variance)).sum(axis=1) / 2
            odds[rows] = powers[rows] @ np.hstack([-half / variance, 2 * half * means / variance, constants[:, None]]).T
        return odds

    def of_samples(self, points: Floats, weight: float) -> Floats:
        """Return the posterior of the clusters for single points (n, d) of the same weight: float64 (n, k)."""
        posterior: Floats = softmax(self.log_odds(points, np.full(len(points), weight)), axis=1)
        return posterior

    def log_odds_or_none(self, points: Floats, weights: Floats) -> Floats:
        r"""Return the log odds of the clusters and, in the last column, of none of them: float64 (n, k + 1).

        The points are task classes that the clusters were not made of. A class that no cluster stands for has the
        prior's mean 0 and variance beta, so that the task class is expected at :math:`\mathcal N(0, 1 / w + \beta)`.
        One more task class after n in k clusters is of a new class in proportion to gamma times the ratio of what
        `mela.labeling.size_prior.log_number` gives for k + 1 and for k classes of n + 1 task classes.

        Gamma is at most 1 here. A larger one says that classes are about equally frequent, which makes it all but
        impossible that one of them was never met in many tasks. The tasks that were fitted can say this of their own
        classes, but not of those of other people.
        """
        model = replace(self, gamma=min(self.gamma, 1.0))
        found, n = int((self.counts > 0).sum()), int(self.counts.sum()) + 1
        ratio = float(log_number(found + 1, n, model.gamma) - log_number(found, n, model.gamma))
        variance = 1 / weights[:, None] + self.between
        none = np.log(model.gamma) + ratio - (points**2 / variance + np.log(variance)).sum(axis=1) / 2
        return np.hstack([model.log_odds(points, weights), none[:, None]])

    def nearest(self, points: Floats) -> Ints:
        """Return the clusters (n, 10) whose expected means are nearest to each task class."""
        return nearest_points(points, NEAR, self.sums / (self.weights[:, None] + 1 / self.between))

    def _best_near(self, points: Floats, weights: Floats, clusters: Ints, near: Ints) -> Ints:
        """Return the most probable of the clusters near (n, c) each task class, where -1 is none, and of its own."""
        precision = self.weights[:, None] + 1 / self.between
        means, prior = self.sums / precision, np.log(self.counts + self.gamma)
        best = np.empty(len(points), dtype=np.int64)
        for start in range(0, len(points), BLOCK):
            rows = slice(start, start + BLOCK)
            some, own = near[rows], clusters[rows]
            variance = 1 / weights[rows, None, None] + 1 / precision[some]
            odds = ((points[rows, None] - means[some]) ** 2 / variance + np.log(variance)).sum(axis=2) / -2 + prior[
                some
            ]
            odds[(some == own[:, None]) | (some < 0)] = -np.inf
            stay = self._own_log_odds(points[rows], weights[rows], own) >= odds.max(axis=1)
            best[rows] = np.where(stay, own, some[np.arange(len(some)), odds.argmax(axis=1)])
        return best

    def _own_log_odds(self, points: Floats, weights: Floats, clusters: Ints) -> Floats:
        others = self.counts[clusters] - 1
        # nothing is left of a cluster of one; what rounding leaves of its sums must not count
        rest = np.where(others > 0, self.weights[clusters] - weights, 0.0)[:, None]
        precision = rest + 1 / self.between
        means = np.where(others[:, None] > 0, self.sums[clusters] - weights[:, None] * points, 0.0) / precision
        variance = 1 / weights[:, None] + 1 / precision
        prior = np.log(np.where(others > 0, others + self.gamma, self.novelty))
        own: Floats = prior - self.power * ((points - means) ** 2 / variance + np.log(variance)).sum(axis=1) / 2
        return own


def _sparse(log_odds: Floats, rows: Ints) -> csr_array:
    """Return the posteriors of some rows without their smallest entries; the other rows are empty."""
    posterior = softmax(log_odds[rows], axis=1)
    posterior[posterior < LEAST] = 0
    whole = np.zeros_like(log_odds)
    whole[rows] = posterior / posterior.sum(axis=1, keepdims=True)
    return csr_array(whole)
