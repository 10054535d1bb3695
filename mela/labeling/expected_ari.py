r"""Estimate how well clusters of task classes agree with the unknown truth, as an adjusted Rand index.

Let b be the share of all pairs of task classes that are in one cluster, P the share of these that are of one class, and
s the share of all pairs that are of one class. The adjusted Rand index (Hubert and Arabie, "Comparing partitions",
1985) depends on nothing else:

.. math:: \text{ARI} = \frac{2 b (P - s)}{s + b - 2 s b} .

b is known. P follows from pairs inside tasks (`mela.labeling.pair_quality`). Where these have chosen a cut, or have
kept classes apart, others have to judge it (`mela.labeling.cuts.Cuts.error`, `mela.labeling.held_out`).

s belongs to the tasks, and not to any clusters. It is estimated as the size of an animal population is from two
catches (Lincoln and Petersen): two partitions find :math:`c_1` and :math:`c_2` pairs that are right, and :math:`c_{12}`
of them are the same. If they miss pairs independently of each other, :math:`s = c_1 c_2 / c_{12}`. Here
:math:`c = b - (1 - s) a`, where a is the share of pairs inside tasks that a partition joins, by tasks that have not
chosen its cut. Two partitions of the same features miss much the same pairs, so that s comes out too small where many
are missed. Where people do not differ, s is therefore at least b, since merging finds about as many classes as there
are. No estimate from features sees that two clusters which look nothing alike are one class.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import renumbered
from mela.labeling.cuts import Cuts, halves
from mela.labeling.pair_quality import collisions, joined_share

STEPS = 50
# standard errors from nothing of the share of pairs that both partitions find, which is then known to a fifth
TOLD = 5


def expected_ari(shared: float, error: float, same: float | None) -> float:
    """Return the adjusted Rand index, in [0, 1], of clusters.

    Parameters
    ----------
    shared : float
        b.
    error : float
        a / b, where a is the share of pairs inside tasks that are in one cluster.
    same : float or None
        s; None if it is unknown. It is at least as large as the share of pairs that are right. If it is unknown, it is
        taken for that, as if no pair were missed.
    """
    right = shared * _precision(error, same or 0.0)
    same = right if same is None else max(same, right)
    rest = same + shared - 2 * same * shared
    gained = 2 * shared * (_precision(error, same) - same)
    return min(max(gained / rest, 0.0), 1.0) if rest > 0 else 0.0


def error_after(error: float, before: Ints, after: Ints) -> float:
    """Return a / b of clusters (n,) that people have corrected, by that of the clusters before.

    Pairs that they have put apart were wrong, and those that they have put together are wrong as often as the others.
    """
    joined, whole = joined_share(after), joined_share(before)
    both = joined_share(_both(before, after))
    wrong = max(error * whole - (whole - both), 0.0) + error * (joined - both)
    return wrong / joined if joined else 0.0


def same_share(cuts: Sequence[Cuts], starts: Ints) -> float | None:
    """Return the median over pairs of trees of the estimated share s of pairs that are of one class.

    Parameters
    ----------
    cuts : sequence of Cuts
        Of trees that do not know which task classes met in tasks.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.

    Returns
    -------
    float or None
        None where pairs inside tasks are too few to tell.
    """
    known, alone, together = cuts[0].known, [], []
    for half in halves(known, cuts[0].sources):
        found = [own.clusters(own.best(half)) for own in cuts]
        alone.append([_joined(clusters, starts, ~half, known) for clusters in found])
        together.append([_joined(_both(*pair), starts, ~half, known) for pair in combinations(found, 2)])
    if not alone:
        return None
    single, twice = np.mean(alone, axis=0), np.mean(together, axis=0)
    pairs = zip(combinations(single, 2), twice, strict=True)
    shares = [_recaptured(one, other, both, int(known.sum())) for (one, other), both in pairs]
    told = [share for share in shares if share is not None]
    return float(np.median(told)) if told else None


def _joined(clusters: Ints, starts: Ints, asked: npt.NDArray[np.bool_], known: Ints) -> tuple[float, float]:
    """Return b of clusters, and their a by some of the tasks."""
    own = np.where(np.repeat(asked, np.diff(starts)), clusters, -1)
    inside = collisions(own, starts) if (own >= 0).any() else 0
    return joined_share(clusters), inside / float(known[asked].sum())


def _both(one: Ints, other: Ints) -> Ints:
    """Return the clusters of task classes that share those of both partitions."""
    return renumbered(np.where((one >= 0) & (other >= 0), one * (int(other.max()) + 1) + other, -1))


def _recaptured(one: Floats, other: Floats, both: Floats, known: int) -> float | None:
    """Return s by the b and a (2,) of two partitions and of both; None if `known` pairs inside tasks do not tell."""
    share = 0.0
    # pairs inside tasks are different classes, which a share s of all pairs are not
    for _ in range(STEPS):
        first, second, twice = (max(float(b - (1 - share) * a), 0.0) for b, a in (one, other, both))
        if twice <= TOLD * np.sqrt(both[1] * known + 1) / known:
            return None
        share = min(first * second / twice, 1.0)
    return share


def _precision(error: float, same: float) -> float:
    """Return P, by the a / b of pairs inside tasks."""
    return min(max(1 - (1 - same) * error, 0.0), 1.0)
