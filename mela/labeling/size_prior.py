r"""Define the prior of the number of classes and their sizes: a mixture of finite mixtures.

Any number of classes K is as probable as any other, their frequencies have a symmetric Dirichlet distribution with
parameter :math:`\gamma`, and each of n task classes is drawn by them. A partition into G classes of
:math:`n_1, \ldots, n_G` then has, with the sum over K replaced by its largest term K = G, the log probability

.. math:: \log G! + \log \frac{\Gamma(\gamma G)}{\Gamma(\gamma G + n)}
    + \sum_v \log \frac{\Gamma(n_v + \gamma)}{\Gamma(\gamma)}

(Miller and Harrison, "Mixture Models With a Prior on the Number of Components", 2018). The larger gamma, the more equal
are the frequencies: tasks that draw their classes evenly do not make large classes grow, as a Dirichlet process would.
"""

import numpy as np
from scipy.special import gammaln

from mela.data.array_types import Floats, Ints

EVENNESS = np.geomspace(1e-2, 1e3, 100)


def log_number(n_clusters: Ints | int, n: int, gamma: float) -> Floats:
    """Return the part of the log probability that depends on the number of classes alone, for each number."""
    number = np.asarray(n_clusters, dtype=np.float64)
    total: Floats = gammaln(number + 1) + gammaln(gamma * number) - gammaln(gamma * number + n)
    return total


def one_fewer(n_clusters: int, n: int, gamma: float) -> Floats:
    """Return what each merge of n_clusters adds by leaving one cluster fewer: float64 (n_clusters - 1,)."""
    return np.diff(log_number(np.arange(n_clusters, 0, -1), n, gamma))


def log_sizes(counts: Floats | Ints, gamma: float) -> Floats:
    """Return the part of the log probability that each class (k,) adds by its size."""
    sizes: Floats = gammaln(counts + gamma) - gammaln(gamma)
    return sizes


def evenness(counts: Ints) -> float:
    """Return the gamma, from 0.01 to 1,000, under which classes of these sizes (k,) are most probable."""
    n = int(counts.sum())
    scores = [float(log_number(len(counts), n, gamma)) + float(log_sizes(counts, gamma).sum()) for gamma in EVENNESS]
    return float(EVENNESS[int(np.argmax(scores))])
