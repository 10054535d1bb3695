r"""Tell how much people's names for labels say about clusters, and which of the names say nothing.

People are taken one after the other, in an order drawn at random. A task class i with a name of the group g tells

.. math:: \log \sum_v p_{iv} \frac{n_{vg} / b_g + \alpha}{n_v + \alpha}, \quad p_{iv} \propto (n_v + \gamma) f_v(x_i)^s,

how much better its features :math:`x_i` predict its name, by what the people before wrote in the clusters v, than
chance does; b, n and :math:`\alpha` are those of `mela.labeling.name_odds`. The sum over the task classes of a group is
the *gain* of the group. Such sums are marginal likelihoods (Dawid, "Statistical theory: the prequential approach",
1984).

Words such as "1" or "other" can be written for any class. A group of names like them has a gain of about 0 or below,
and its names tell nothing. Leaving one of G groups out costs :math:`\log G`, and the power s and the concentration
:math:`\alpha` are those under which the gains, less such costs, add up to most. Of the powers that are tried, each as
probable as it makes the names, s is the median. By these gains, the share of the groups that tell something is
estimated by maximum likelihood. What more probably tells nothing is left out, and everything is estimated again.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logit, softmax

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
# of the fixed point for the share of groups that tell something
ROUNDS = 50


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
        By how much the names are more probable given the features than by chance, as a logarithm.
    """

    clusters: Ints
    names: Names
    power: float
    gain: float


def name_gain(evidence: Evidence, clusters: Ints, names: Names) -> NameGain:
    """Return what names, of at least one group, say about clusters (n,) of the task classes of some evidence."""
    cost, paid = np.log(names.n_groups), 0.0
    while True:
        gains = _gains(evidence, clusters, names)
        sums = np.maximum(gains, -cost).sum(axis=2)
        power = int((np.cumsum(softmax(sums.max(axis=1))) >= 0.5).argmax())
        best = power, int(sums[power].argmax())
        silent = np.flatnonzero((gains[best] < -logit(_telling(gains[best]))) & (gains[power].max(axis=0) <= cost))
        if len(silent) in (0, names.n_groups):
            chosen = replace(names, concentration=float(CONCENTRATIONS[best[1]]))
            gain = float(sums[best]) - paid
            return NameGain(clusters=clusters, names=chosen, power=float(POWERS[power]), gain=gain)
        names, paid = names.without(silent), paid + cost * len(silent)


def _telling(gains: Floats) -> float:
    """Return the most probable share of groups that tell something, by the gains (g,) of all."""
    n, share = len(gains), 0.9
    for _ in range(ROUNDS):
        share = float(np.clip(expit(gains + logit(share)).mean(), 1 / (n + 1), n / (n + 1)))
    return share


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
