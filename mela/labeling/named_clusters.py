r"""Change clusters of task classes as the names tell that people write for their labels.

Clusters are first found without names. Where names agree in them no more than by chance, they stay. Otherwise the most
probable partition is looked for, by the model of `mela.labeling.merging` with two changes: the density of features has
a power :math:`s \le 1`, since it is too sure of itself where people differ; and the names count
(`mela.labeling.name_odds`). Features are coordinates along which the first clusters differ most.

Three things are estimated: s, the concentration :math:`\alpha`, and which names are alike
(`mela.labeling.alike_names`). People are taken one after the other, in an order drawn at random. A task class i with a
name of the group g tells

.. math:: \log \sum_v p_{iv} \frac{n_{vg} / b_g + \alpha}{n_v + \alpha}, \quad p_{iv} \propto (n_v + \gamma) f_v(x_i)^s,

how much better its features :math:`x_i` predict its name, by what the people before wrote in the first clusters v, than
chance does. The sum over all task classes is the *gain*. Such sums are marginal likelihoods (Dawid, "Statistical
theory: the prequential approach", 1984). No name has a part in the first clusters, so that names which say nothing
cannot make themselves believed. They count only if the gain exceeds the logarithm of their number, which is the
Bayesian information criterion for two parameters. The power is the median of those that are tried, each as probable as
it makes the names.

The search starts from the first clusters. One whose names differ is divided, unless its parts are more probably one
class, or their names alone do not speak for a division. Then clusters are merged, and task classes change sides, as
long as the partition gets more probable. A second search starts from the first clusters divided by all their names. Of
both, the one with the larger gain is taken, since features with a small power would by themselves rather leave
everything apart. Where features are so weak that the first clusters join next to nothing, names cannot be judged, and
little changes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.clusters import collect, meeting_odds, meeting_rate, renumbered
from mela.labeling.memberships import Memberships
from mela.labeling.merge_odds import marginal
from mela.labeling.name_odds import Names, NamesOfOthers
from mela.labeling.nearest_points import ALL_PAIRS
from mela.labeling.partition import Evidence, refine
from mela.labeling.size_prior import evenness, log_sizes
from mela.labeling.space import discriminant_space

POWERS = np.array([0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1])
CONCENTRATIONS = np.geomspace(0.01, 1e4, 19)
# parts of the people who are taken one after the other
TURNS = 32
# numbers that one part of the computation holds
NUMBERS = 2**22


@dataclass(frozen=True, kw_only=True)
class Named:
    """Hold clusters that names have changed.

    Attributes
    ----------
    clusters : int64 (n,)
        From 0 without gaps; -1 as before.
    names : Names
    power : float
        s.
    gain : float
        By how much the names are more probable given the features than by chance, as a logarithm.
    """

    clusters: Ints
    names: Names
    power: float
    gain: float


def use_names(clusters: Ints, means: Floats, starts: Ints, candidates: Iterable[Names]) -> Named | None:
    """Return the clusters that names speak for; None where these say nothing.

    Parameters
    ----------
    clusters : int64 (n,)
        Found without names, from 0; -1 is left out.
    means : float64 (n, m)
        Task classes.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.
    candidates : iterable of Names
        The names by several notions of what is alike.

    Raises
    ------
    MelaError
        Clusters, or their parts that are named alike, are more than 5,000, of which not all pairs can be compared.
    """
    clusters = renumbered(clusters)
    space = discriminant_space(means, clusters)
    if space is None:
        return None
    evidence = Evidence(
        points=space.transform(means),
        weights=np.ones(len(means)),
        starts=starts,
        between=space.between,
        rate=meeting_rate(starts),
    )
    best = max((_told(evidence, clusters, names) for names in candidates), key=lambda found: found.gain)
    if best.gain <= np.log(best.names.weights.sum()):
        return None
    evidence = replace(evidence, power=best.power, names=best.names)
    gamma = evenness(np.bincount(clusters[clusters >= 0]))
    cells = renumbered(np.where(clusters >= 0, clusters * best.names.n_groups + best.names.groups, -1))
    _require_few(cells)
    starts_from = (_divided(evidence, best.names, clusters, gamma), cells)
    ends = (renumbered(refine(evidence, evidence.merge(start, gamma)[0])[0]) for start in starts_from)
    found = max((_told(evidence, end, best.names) for end in ends), key=lambda end: end.gain)
    return replace(best, clusters=found.clusters)


def _require_few(clusters: Ints) -> None:
    """Raise MelaError if clusters (n,), from 0, are too many for a table of all pairs."""
    if (k := int(clusters.max()) + 1) > ALL_PAIRS:
        raise MelaError(
            f"names: expected at most {ALL_PAIRS} clusters that names may change, got {k}; leave names out (in the "
            "pipeline: set merging.names to false)"
        )


def _told(evidence: Evidence, clusters: Ints, names: Names) -> Named:
    """Return what names tell by clusters (n,), which stay: the concentration, the power and the gain."""
    n_owners, k, points = int(names.owners.max()) + 1, int(clusters.max()) + 1, evidence.points
    gamma = evenness(np.bincount(clusters[clusters >= 0]))
    model = Memberships.of(points, evidence.weights, clusters, k, evidence.between, gamma)
    turns = (np.random.default_rng(0).permutation(n_owners) * TURNS // n_owners)[names.owners]
    gains = np.zeros((len(POWERS), len(CONCENTRATIONS)))
    # the first ones have nobody before them
    for turn in range(1, TURNS):
        before = names.of_others(np.where(turns < turn, clusters, -1), k)
        gains += _gains(model, points, clusters, before, np.flatnonzero((turns == turn) & (clusters >= 0)))
    power = int((np.cumsum(softmax(gains.max(axis=1))) >= 0.5).argmax())
    chosen = replace(names, concentration=float(CONCENTRATIONS[gains[power].argmax()]))
    return Named(clusters=clusters, names=chosen, power=float(POWERS[power]), gain=float(gains[power].max()))


def _gains(model: Memberships, points: Floats, clusters: Ints, before: NamesOfOthers, rows: Ints) -> Floats:
    """Return by how much some task classes (b,) predict their names better than chance (n_powers, n_concentrations)."""
    found = np.zeros((len(POWERS), len(CONCENTRATIONS)))
    flat = replace(model, power=0.0)
    for some in np.array_split(rows, -(-len(rows) * len(model.weights) * len(POWERS) // NUMBERS) or 1):
        given = points[some], np.ones(len(some)), clusters[some]
        prior = flat.member_log_odds(*given)
        odds = model.member_log_odds(*given) - prior
        probable = softmax(POWERS[:, None, None] * odds + prior, axis=2)
        counts, totals = before.counts(some)
        for column, concentration in enumerate(CONCENTRATIONS):
            ratios = before.ratios(some, counts, totals, concentration)
            found[:, column] += np.log(np.einsum("pbk,bk->pb", probable, ratios)) @ before.names.weights[some]
    return found


def _divided(evidence: Evidence, names: Names, clusters: Ints, gamma: float) -> Ints:
    """Return clusters (n,) of which those are divided whose names speak for it."""
    found = clusters.copy()
    for cluster in range(int(clusters.max()) + 1):
        rows = np.flatnonzero(clusters == cluster)
        cells = np.unique(names.groups[rows], return_inverse=True)[1]
        if cells.max() > 0:
            part = _joined_again(evidence, names, rows, cells, gamma)
            found[rows] = np.where(part > 0, found.max() + part, cluster)
    return found


def _joined_again(evidence: Evidence, names: Names, rows: Ints, cells: Ints, gamma: float) -> Ints:
    """Return the parts (b,), from 0, into which some task classes of one cluster fall, which start as cells (b,)."""
    m, n = int(cells.max()) + 1, len(evidence.points)
    whole = np.full(n, -1)
    whole[rows] = cells
    parts, written = collect(whole, evidence.points, evidence.weights, evidence.starts), names.counts(whole, m)
    alone = evidence.power * marginal(parts.weights, parts.sums, evidence.between)

    def row(u: int) -> Floats:
        counts, of_names = parts.counts, written.with_all(u)
        # parts were made by names, and of all divisions into as many, this one is the most surprising
        by_names = of_names + log_sizes(counts + counts[u], 1) - log_sizes(counts, 1)
        by_names -= log_sizes(counts[u : u + 1], 1)
        both = parts.weights + parts.weights[u], parts.sums + parts.sums[u]
        odds = evidence.power * marginal(*both, evidence.between) - alone - alone[u] + of_names
        odds += log_sizes(counts + counts[u], gamma) - log_sizes(counts, gamma) - log_sizes(counts[u : u + 1], gamma)
        odds += meeting_odds(parts.meetings.with_all(u), counts[u], counts, evidence.rate)
        found: Floats = np.maximum(by_names, odds)
        found[gone] = found[u] = -np.inf
        return found

    gone, of_cells = np.zeros(m, dtype=np.bool_), np.arange(m)
    odds = np.stack([row(u) for u in range(m)])
    partner = odds.argmax(axis=1)
    while (best := odds[np.arange(m), partner]).max() >= 0:
        v = int(partner[u := int(best.argmax())])
        u, v = min(u, v), max(u, v)
        parts.absorb(u, v)
        written.absorb(u, v)
        of_cells[of_cells == v] = u
        gone[v] = True
        alone[u] = evidence.power * marginal(parts.weights[u : u + 1], parts.sums[u : u + 1], evidence.between)[0]
        odds[v], odds[:, v] = -np.inf, -np.inf
        odds[u] = odds[:, u] = row(u)
        stale = (partner == u) | (partner == v) | (odds[:, u] > best)
        stale[u] = True
        partner[stale] = odds[stale].argmax(axis=1)
    return np.unique(of_cells[cells], return_inverse=True)[1].astype(np.int64)
