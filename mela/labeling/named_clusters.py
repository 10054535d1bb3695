"""Change clusters of task classes as the names tell that people write for their labels.

Clusters are first found without names. Where names agree in them no more than by chance, they stay. Otherwise the most
probable partition is looked for, by the model of `mela.labeling.merging` with two changes: the density of features has
a power s of at most 1, since it is too sure of itself where people differ; and the names count
(`mela.labeling.name_odds`). Features are coordinates along which the clusters differ most.

Three things are estimated: the power, the concentration of names, and which names are alike
(`mela.labeling.alike_names`). All of it is told by how well the features of a task class predict its name
(`mela.labeling.name_gain`). No name has a part in the first clusters, so that names which say nothing cannot make
themselves believed at first. They count only if the gain exceeds the logarithm of the number of task classes, which is
the Bayesian information criterion for two parameters. What only one person writes tells nothing.

The search starts from the clusters. One whose names differ is divided, unless its parts are more probably one class, or
their names alone do not speak for a division. Task classes whose names tell nothing follow their features into one of
the parts. Then clusters are merged, and task classes change sides, as long as the partition gets more probable. A
second search starts from the clusters divided by all their names. Of both, the one with the larger gain is taken, since
features with a small power would by themselves rather leave everything apart. Its clusters give new coordinates, a new
power and a new concentration for two more searches, as long as the gain rises. Names that once told nothing never come
back: people who number their labels would otherwise make clusters of their own. Where features are so weak that
the first clusters join next to nothing, names cannot be judged, and little changes.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from mela.data.array_types import Flags, Floats, Ints
from mela.errors import MelaError
from mela.labeling.clusters import collect, meeting_odds, meeting_rate, renumbered
from mela.labeling.memberships import BLOCK, Memberships
from mela.labeling.merge_odds import marginal
from mela.labeling.name_gain import NameGain, name_gain
from mela.labeling.name_odds import Names
from mela.labeling.nearest_points import ALL_PAIRS
from mela.labeling.partition import Evidence, refine
from mela.labeling.size_prior import evenness, log_sizes
from mela.labeling.space import discriminant_space

# by how much the gain has to rise for one more search
STEP = 1.0


def use_names(clusters: Ints, means: Floats, starts: Ints, candidates: Iterable[Names]) -> NameGain | None:
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
    evidence, shared = _evidence(clusters, means, starts), [names.shared(clusters >= 0) for names in candidates]
    if evidence is None or not any(names.n_groups for names in shared):
        return None
    told = (name_gain(evidence, clusters, names, names.n_groups) for names in shared if names.n_groups)
    best = max(told, key=lambda found: found.gain)
    if best.gain <= np.log(len(clusters)):
        return None
    best = _searched(evidence, best)
    while (found := _evidence(best.clusters, means, starts)) is not None:
        again = _searched(found, best)
        if again.gain <= best.gain + STEP:
            break
        best = again
    return best


def _evidence(clusters: Ints, means: Floats, starts: Ints) -> Evidence | None:
    """Return task classes (n, m) along which clusters (n,) differ most, or None if they differ in nothing."""
    space = discriminant_space(means, clusters)
    if space is None:
        return None
    return Evidence(
        points=space.transform(means),
        weights=np.ones(len(means)),
        starts=starts,
        between=space.between,
        rate=meeting_rate(starts),
    )


def _searched(evidence: Evidence, told: NameGain) -> NameGain:
    """Return what names tell about the better one of the partitions that two searches find."""
    own = replace(evidence, power=told.power, names=told.names)
    gamma = evenness(np.bincount(told.clusters[told.clusters >= 0]))
    divided = _divided(own, told.names, told.clusters, gamma)
    cells = told.clusters * (told.names.n_groups + 1) + told.names.groups + 1
    starts = [divided, renumbered(np.where(told.clusters >= 0, cells, -1))]
    few = [start for start in starts if start.max() < ALL_PAIRS]
    if not few:
        raise MelaError(
            f"names: expected at most {ALL_PAIRS} clusters that names may change, got {divided.max() + 1}; leave names "
            "out (in the pipeline: set merging.names to false)"
        )
    ends = (renumbered(refine(own, own.merge(start, gamma)[0])[0]) for start in few)
    return max((name_gain(evidence, end, told.names, told.n_groups) for end in ends), key=lambda found: found.gain)


def _divided(evidence: Evidence, names: Names, clusters: Ints, gamma: float) -> Ints:
    """Return clusters (n,) of which those are divided whose names speak for it."""
    found = clusters.copy()
    for cluster in range(int(clusters.max()) + 1):
        rows = np.flatnonzero(clusters == cluster)
        rows = rows[names.groups[rows] >= 0]
        cells = np.unique(names.groups[rows], return_inverse=True)[1]
        if len(rows) and cells.max() > 0:
            part = _joined_again(evidence, names, rows, cells, gamma)
            found[rows] = np.where(part > 0, found.max() + part, cluster)
    return _placed(evidence, clusters, found, (names.groups < 0) & (clusters >= 0), gamma)


def _placed(evidence: Evidence, clusters: Ints, parts: Ints, silent: Flags, gamma: float) -> Ints:
    """Return the parts (n,) with some silent task classes (n,) in the most probable part of their cluster."""
    k = int(parts.max()) + 1
    # a cluster of which nobody says anything stays whole
    moved = np.flatnonzero(silent & np.isin(clusters, clusters[~silent]))
    own = parts.copy()
    own[moved] = -1
    model = Memberships.of(evidence.points, evidence.weights, own, k, evidence.between, gamma)
    model = replace(model, power=evidence.power)
    of_parts = np.full(k, -1)
    of_parts[own[own >= 0]] = clusters[own >= 0]
    for rows in np.array_split(moved, -(-len(moved) // BLOCK) or 1):
        odds = model.log_odds(evidence.points[rows], evidence.weights[rows])
        odds[of_parts != clusters[rows, None]] = -np.inf
        own[rows] = odds.argmax(axis=1)
    return own


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
