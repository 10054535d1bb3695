"""How well inferred labels match the truth, and how sure a mean accuracy is."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

Ints = npt.NDArray[np.int64]


def majority_accuracy(clusters: Ints, truth: Ints) -> float:
    """Share of samples whose true class is the most frequent one of their cluster (clustering accuracy, purity).

    Parameters
    ----------
    clusters, truth : int64 (n,)
        Cluster and true class of each sample, from 0.
    """
    table = np.zeros((clusters.max() + 1, truth.max() + 1))
    np.add.at(table, (clusters, truth), 1)
    return float(table.max(axis=1).sum() / table.sum())


def partition_scores(labels: Ints, truth: Ints) -> dict[str, float]:
    """Purity in percent, adjusted Rand index and normalised mutual information of two labellings (n,)."""
    return {
        "purity": 100 * majority_accuracy(labels, truth),
        "ari": float(adjusted_rand_score(truth, labels)),
        "nmi": float(normalized_mutual_info_score(truth, labels)),
    }


@dataclass(frozen=True)
class Interval:
    """A mean with the half-width of its 95% confidence interval (Student's t)."""

    mean: float
    ci95: float

    @classmethod
    def of(cls, values: npt.NDArray[np.float64]) -> "Interval":
        """Of independent values (n,), n at least 2."""
        if len(values) < 2:
            raise ValueError(f"an interval needs at least 2 values, got {len(values)}")
        error = float(np.std(values, ddof=1)) / np.sqrt(len(values))
        return cls(float(np.mean(values)), float(stats.t.ppf(0.975, len(values) - 1) * error))
