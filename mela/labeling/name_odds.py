r"""Tell how much the names that people write for their labels say about clusters of task classes.

Names of one class are drawn from a distribution of its own, which is drawn from a Dirichlet distribution: a group g of
alike names has the parameter :math:`\alpha b_g`, where :math:`b_g` is its share among all names. Clusters in which
group g was written :math:`n_{vg}` times, of :math:`n_v` names, then have the evidence

.. math:: \prod_v \frac{\Gamma(\alpha)}{\Gamma(\alpha + n_v)}
    \prod_g \frac{\Gamma(\alpha b_g + n_{vg})}{\Gamma(\alpha b_g)} .

Where people call a class alike, the concentration :math:`\alpha` is small. The larger it is, the less do names say; for
numbers such as "1" to "5" it grows without bound. One person who writes a name for many task classes counts as one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln

from mela.data.array_types import Flags, Floats, Ints
from mela.labeling.alike_names import plain_name


class NameCounts:
    r"""Hold how often each of k clusters has each of g groups of names.

    Parameters
    ----------
    table : csr_array (k, g)
    priors : float64 (g,)
        :math:`\alpha b_g` of each group.
    """

    def __init__(self, table: csr_array, priors: Floats) -> None:
        self._priors, self._concentration = priors, float(priors.sum())
        self.totals = np.asarray(table.sum(axis=1), dtype=np.float64)
        both = table.tocoo()
        self._of_clusters: list[dict[int, float]] = [{} for _ in range(table.shape[0])]
        self._of_groups: list[dict[int, float]] = [{} for _ in range(table.shape[1])]
        for cluster, group, count in zip(both.row.tolist(), both.col.tolist(), both.data.tolist(), strict=True):
            self._of_clusters[cluster][group] = self._of_groups[group][cluster] = count

    def with_all(self, u: int) -> Floats:
        """Return the log odds (k,) that the names of a cluster give to its being one class with each cluster."""
        total = self._concentration
        odds: Floats = gammaln(self.totals + total) - gammaln(self.totals + self.totals[u] + total)
        odds += gammaln(self.totals[u] + total) - gammaln(total)
        for group, own in self._of_clusters[u].items():
            have, prior = self._of_groups[group], self._priors[group]
            counts = np.fromiter(have.values(), dtype=np.float64, count=len(have))
            more = gammaln(counts + own + prior) - gammaln(counts + prior)
            odds[list(have)] += more - (gammaln(own + prior) - gammaln(prior))
        return odds

    def absorb(self, u: int, v: int) -> None:
        """Count names of cluster v as those of cluster u."""
        own = self._of_clusters[u]
        for group, count in self._of_clusters[v].items():
            del self._of_groups[group][v]
            own[group] = self._of_groups[group][u] = own.get(group, 0.0) + count
        self._of_clusters[v] = {}
        self.totals[u] += self.totals[v]
        self.totals[v] = 0


@dataclass(frozen=True, kw_only=True)
class Names:
    r"""Hold the names of task classes as groups of alike ones.

    Attributes
    ----------
    groups : int64 (n,)
        From 0 without gaps; -1 where a name tells nothing.
    owners : int64 (n,)
        Person of each task class, or where nobody says, its task.
    concentration : float
        :math:`\alpha`.
    """

    groups: Ints
    owners: Ints
    concentration: float = 1.0

    @cached_property
    def _pairs(self) -> Ints:
        """Number of what a person wrote (n,): the same for what the person wrote alike."""
        own = self.owners * (self.n_groups + 1) + self.groups
        return np.unique(own, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def weights(self) -> Floats:
        """What each name (n,) counts: one over how often its person has written it."""
        return np.where(self.groups >= 0, 1 / np.bincount(self._pairs)[self._pairs], 0)

    @property
    def n_groups(self) -> int:
        """Number of groups, g."""
        return int(self.groups.max()) + 1

    @cached_property
    def shares(self) -> Floats:
        """Share of each group (g,) among all names."""
        counts = np.bincount(self.groups[self.groups >= 0], self.weights[self.groups >= 0])
        return counts / counts.sum()

    @property
    def priors(self) -> Floats:
        r""":math:`\alpha b_g` of each group (g,)."""
        return self.concentration * self.shares

    def shared(self, used: Flags) -> "Names":
        """Return the names of some task classes (n,), without those that only one person has written."""
        own = replace(self, groups=np.where(used, self.groups, -1))
        of_pairs = np.full(own._pairs.max() + 1, -1)
        of_pairs[own._pairs] = own.groups
        people = np.bincount(of_pairs[of_pairs >= 0], minlength=own.n_groups)
        return own.without(np.flatnonzero(people < 2))

    def without(self, gone: Ints) -> "Names":
        """Return the names without some groups."""
        kept = np.setdiff1d(np.arange(self.n_groups), gone)
        numbers = np.full(self.n_groups + 1, -1)
        numbers[kept] = np.arange(len(kept))
        return replace(self, groups=numbers[self.groups])

    def counts(self, clusters: Ints, k: int) -> NameCounts:
        """Return how often each of k clusters has each group, to be merged; cluster -1 is left out."""
        return NameCounts(csr_array(self._table(self.groups, clusters, k).T), self.priors)

    def log_evidence(self, clusters: Ints) -> float:
        """Return the log evidence of clusters (n,), from 0; those of -1 are left out."""
        table = self._table(self.groups, clusters, int(clusters.max()) + 1).tocoo()
        totals, prior = np.asarray(table.sum(axis=0)), self.priors[table.row]
        apart = gammaln(self.concentration) - gammaln(self.concentration + totals)
        return float(apart.sum() + (gammaln(prior + table.data) - gammaln(prior)).sum())

    def of_others(self, clusters: Ints, k: int) -> "NamesOfOthers":
        """Return what others wrote for the task classes of each of k clusters (n,); -1 is left out."""
        return NamesOfOthers(
            names=self,
            written=self._table(self.groups, clusters, k),
            own=self._table(self._pairs, clusters, k),
        )

    def _table(self, rows: Ints, clusters: Ints, k: int) -> csr_array:
        used = (clusters >= 0) & (self.groups >= 0)
        shape = (int(rows.max()) + 1, k)
        return csr_array((self.weights[used], (rows[used], clusters[used])), shape=shape)


@dataclass(frozen=True, kw_only=True)
class NamesOfOthers:
    """Hold what was written for the task classes of k clusters.

    Attributes
    ----------
    names : Names
    written, own : csr_array (g, k), (n_pairs, k)
        How often each group was, and by each person.
    """

    names: Names
    written: csr_array
    own: csr_array

    def counts(self, rows: Ints) -> tuple[Floats, Floats]:
        """Return how often others wrote the names of some task classes (b,) in each cluster (b, k), and all they wrote.

        What the same person has written alike is left out of both.
        """
        own = self.own[self.names._pairs[rows]].toarray()
        counts = self.written[self.names.groups[rows]].toarray()
        totals = np.asarray(self.written.sum(axis=0))
        return np.maximum(counts - own, 0), np.maximum(totals - own, 0)

    def log_ratios(self, rows: Ints) -> Floats:
        """Return how much more probable each cluster makes the names of some task classes (b,) than chance: (b, k)."""
        counts, totals = self.counts(rows)
        return np.log(self.ratios(rows, counts, totals, self.names.concentration))

    def ratios(self, rows: Ints, counts: Floats, totals: Floats, concentration: float) -> Floats:
        """Return the same for such counts and a concentration, and not as logarithms."""
        return _ratios(self.names.groups[rows], self.names.shares, counts, totals, concentration)


@dataclass(frozen=True, kw_only=True)
class KnownWords:
    r"""Hold what people wrote in k clusters, for the names that others will write.

    Attributes
    ----------
    groups : mapping from str to int
        Group of each word that tells something, without what makes no difference (`mela.labeling.alike_names`).
    written : csr_array (g, k)
        How often each group was written.
    names : Names
        Those of the task classes of the clusters.
    """

    groups: Mapping[str, int]
    written: csr_array
    names: Names

    @classmethod
    def of(cls, names: Names, written: Sequence[str], clusters: Ints, k: int) -> "KnownWords":
        """Return what was written (n,) for task classes of k clusters (n,); -1 is left out."""
        told = zip(written, names.groups.tolist(), strict=True)
        groups = {plain_name(word): group for word, group in told if group >= 0}
        return cls(groups=groups, written=names.of_others(clusters, k).written, names=names)

    def log_ratios(self, words: Sequence[str], k: int) -> Callable[[Ints], Floats]:
        """Return what tells how much more probable each of k clusters makes some of the names (n,) than chance: (b, k).

        Nobody has written anything yet in clusters beyond those that are known, and unknown words tell nothing.
        """
        groups = np.array([self.groups.get(plain_name(word), -1) for word in words], dtype=np.int64)
        more = k - self.written.shape[1]
        totals: Floats = np.pad(np.asarray(self.written.sum(axis=0)), (0, more))

        def told(rows: Ints) -> Floats:
            counts: Floats = np.pad(self.written[groups[rows]].toarray(), ((0, 0), (0, more)))
            return np.log(_ratios(groups[rows], self.names.shares, counts, totals, self.names.concentration))

        return told


def _ratios(groups: Ints, shares: Floats, counts: Floats, totals: Floats, concentration: float) -> Floats:
    """Return by how often each name (b,) and all names were written in each cluster what they tell of it (b, k)."""
    found: Floats = (counts / shares[groups, None] + concentration) / (totals + concentration)
    return np.where(groups[:, None] >= 0, found, 1.0)
