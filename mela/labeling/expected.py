r"""Estimate how well clusters of task classes agree with the unknown truth, as an adjusted Rand index.

Let b be the share of all pairs of task classes that are in one cluster, P the share of these that are of one class, and
s the share of all pairs that are of one class. The adjusted Rand index (Hubert and Arabie, "Comparing partitions",
1985) depends on nothing else:

.. math:: \text{ARI} = \frac{2 b (P - s)}{s + b - 2 s b} .

b is known. P follows from pairs inside tasks (`mela.labeling.pair_quality`); where these have chosen a cut, others have
to judge it (`mela.labeling.cuts.Cuts.error`).

s belongs to the tasks, and not to any clusters. It is estimated as the size of an animal population is from two
catches (Lincoln and Petersen): two partitions find :math:`c_1` and :math:`c_2` pairs that are right, and :math:`c_{12}`
of them are the same. If they miss pairs independently of each other, :math:`s = c_1 c_2 / c_{12}`. Two partitions of
the same features miss much the same pairs, so that s comes out too small where many are missed. No estimate from
features sees that two clusters which look nothing alike are one class.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from mela.data.array_types import Ints
from mela.labeling.pair_quality import pair_quality

STEPS = 50


def expected_ari(shared: float, error: float, same: float) -> float:
    """Return the adjusted Rand index, in [0, 1], of clusters.

    Parameters
    ----------
    shared : float
        b.
    error : float
        a / b, where a is the share of pairs inside tasks that are in one cluster.
    same : float
        s.
    """
    rest = same + shared - 2 * same * shared
    gained = 2 * shared * (_precision(error, same) - same)
    return min(max(gained / rest, 0.0), 1.0) if rest > 0 else 0.0


def same_share(partitions: Sequence[Ints], starts: Ints) -> float | None:
    """Return the median over pairs of partitions of the estimated share s of pairs that are of one class.

    Parameters
    ----------
    partitions : sequence of int64 (n,)
        Clusters of task classes from 0, -1 for none, found without regard to which of them met in tasks.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.

    Returns
    -------
    float or None
        None where no two partitions agree about any pair that is probably right.
    """
    found = [_recaptured(one, other, starts) for one, other in combinations(partitions, 2)]
    known = [share for share in found if share is not None]
    return float(np.median(known)) if known else None


def _recaptured(one: Ints, other: Ints, starts: Ints) -> float | None:
    together = np.where((one >= 0) & (other >= 0), one * (int(other.max()) + 1) + other, -1)
    used = together >= 0
    together[used] = np.unique(together[used], return_inverse=True)[1]
    caught = [pair_quality(clusters, starts) for clusters in (one, other, together)]
    share = 0.0
    # pairs inside tasks are known to be different, which a share s of all pairs are not
    for _ in range(STEPS):
        first, second, both = (quality.shared * _precision(1 - quality.precision, share) for quality in caught)
        if not both > 0:
            return None
        share = min(first * second / both, 0.5)
    return share


def _precision(error: float, same: float) -> float:
    """Return P, by the a / b of pairs inside tasks."""
    return min(max(1 - (1 - same) * error, 0.0), 1.0)
