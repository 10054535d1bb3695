r"""Tell how much people's names for labels say about clusters, and which of the names say nothing.

People are taken one after the other, in an order drawn at random. A task class i with a name of the group g tells

.. math:: \log \sum_v p_{iv} \frac{n_{vg} / b_g + \alpha}{n_v + \alpha}, \quad p_{iv} \propto (n_v + \gamma) f_v(x_i)^s,

how much better its features :math:`x_i` predict its name, by what the people before wrote in the clusters v, than
chance does; b, n and :math:`\alpha` are those of `mela.labeling.name_odds`. The sum over the task classes of a group is
the *gain* of the group. Such sums are marginal likelihoods (Dawid, "Statistical theory: the prequential approach",
1984).

Words such as "1" or "other" can be written for any class. A group of names like them has a gain of about 0 or below.
What is estimated is found in this order:

- The power s is the median of those that are tried, each as probable as it makes the names by its best
  :math:`\alpha`. :math:`\alpha` is the one with the largest sum of gains for this s. A group takes at most
  :math:`\log G` from a sum, where G is the number of groups, since it can be left out.
- By the gains of all groups, the share of those that tell something is estimated by maximum likelihood. A group is
  silent if it more probably tells nothing, and gains at most :math:`\log G` with any other :math:`\alpha`.
- Silent groups are left out, and all is estimated again, until no group is silent, or all are.

The gain of the names is that of the groups that are kept, less the logarithm of how many such choices of groups there
are, :math:`(G + 1) \binom{G}{kept}`.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array
from scipy.special import expit, gammaln, logit, softmax

from mela.data.array_types import Floats, Ints
from mela.labeling.memberships import Memberships
from mela.labeling.name_odds import Names
from mela.labeling.partition import Evidence
from mela.labeling.size_prior import evenness

POWERS = np.array([0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1])
CONCENTRATIONS = np.geomspace(0.01, 1e4, 19)
# parts of the people who are taken one after the other
TURNS = 32
# numbers that one part of the computation holds
NUMBERS = 2**22


@dataclass(frozen=True, kw_only=True)
class NameGain:
    """Hold what names say about clusters.

    Attributes
    ----------
    clusters : int64 (n,)
        From 0 without gaps; -1 is left out.
    names : Names
        Without those that tell nothing.
    power : float
        s, of the density of the features.
    gain : float
        By how much the names are more probable given the features than by chance, as a logarithm, less the price of
        having chosen them.
    n_groups : int
        How many groups there were before any was left out.
    """

    clusters: Ints
    names: Names
    power: float
    gain: float
    n_groups: int


def name_gain(evidence: Evidence, clusters: Ints, names: Names, n_groups: int) -> NameGain:
    """Return what names say about clusters of task classes.

    Parameters
    ----------
    evidence : Evidence
        Its points are the task classes.
    clusters : int64 (n,)
        From 0 without gaps; -1 is left out.
    names : Names
        Of at least one group.
    n_groups : int
        How many groups there were before any was left out.
    """
    most = np.log(n_groups)
    while True:
        gains = _gains(evidence, clusters, names)
        sums = np.maximum(gains, -most).sum(axis=2)
        power = int((np.cumsum(softmax(sums.max(axis=1))) >= 0.5).argmax())
        best = power, int(sums[power].argmax())
        silent = np.flatnonzero((gains[best] < -logit(_telling(gains[best]))) & (gains[power].max(axis=0) <= most))
        if len(silent) in (0, names.n_groups):
            chosen = replace(names, concentration=float(CONCENTRATIONS[best[1]]))
            gain = float(sums[best]) - _log_choices(n_groups, names.n_groups)
            s = float(POWERS[power])
            return NameGain(clusters=clusters, names=chosen, power=s, gain=gain, n_groups=n_groups)
        names = names.without(silent)


def _log_choices(n: int, kept: int) -> float:
    """Return the logarithm of the number of choices of some of n groups, if each number of them is as probable."""
    return float(np.log(n + 1) + gammaln(n + 1) - gammaln(kept + 1) - gammaln(n - kept + 1))


def _telling(gains: Floats) -> float:
    """Return the most probable share of groups that tell something, by the gains (g,) of all.

    One more group tells something, and one more tells nothing, so that it is neither 0 nor 1.
    """

    def rises(share: float) -> float:
        return float(expit(gains + logit(share)).mean()) - share

    least, most = 1 / (len(gains) + 1), len(gains) / (len(gains) + 1)
    if rises(least) <= 0:
        return least
    return most if rises(most) >= 0 else float(brentq(rises, least, most))


def _gains(evidence: Evidence, clusters: Ints, names: Names) -> Floats:
    """Return the gain of each group of names (n_powers, n_concentrations, g)."""
    n_owners, k = int(names.owners.max()) + 1, int(clusters.max()) + 1
    gamma = evenness(np.bincount(clusters[clusters >= 0]))
    model = Memberships.of(evidence.points, evidence.weights, clusters, k, evidence.between, gamma)
    flat = replace(model, power=0.0)
    turns = (np.random.default_rng(0).permutation(n_owners) * TURNS // n_owners)[names.owners]
    used = (clusters >= 0) & (names.groups >= 0)
    gains = np.zeros((len(POWERS), len(CONCENTRATIONS), names.n_groups))
    # the first ones have nobody before them
    for turn in range(1, TURNS):
        before = names.of_others(np.where(turns < turn, clusters, -1), k)
        rows = np.flatnonzero(used & (turns == turn))
        for some in np.array_split(rows, -(-len(rows) * k * len(POWERS) // NUMBERS) or 1):
            given = evidence.points[some], evidence.weights[some], clusters[some]
            prior = flat.member_log_odds(*given)
            odds = model.member_log_odds(*given) - prior
            probable = softmax(POWERS[:, None, None] * odds + prior, axis=2)
            counts, totals = before.counts(some)
            found = np.empty((len(POWERS), len(CONCENTRATIONS), len(some)))
            for column, concentration in enumerate(CONCENTRATIONS):
                ratios = before.ratios(some, counts, totals, concentration)
                found[:, column] = np.log(np.einsum("pbk,bk->pb", probable, ratios))
            table = np.arange(len(some)), names.groups[some]
            of_groups = csr_array((names.weights[some], table), shape=(len(some), names.n_groups))
            flattened = found.reshape(len(POWERS) * len(CONCENTRATIONS), len(some))
            gains += np.asarray(flattened @ of_groups).reshape(gains.shape)
    return gains
