"""How well inferred labels match the truth."""

import numpy as np
import numpy.typing as npt

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
    # half a second, for which nobody waits who only wants to see the options, or has a parameter wrong
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

    return {
        "purity": 100 * majority_accuracy(labels, truth),
        "ari": float(adjusted_rand_score(truth, labels)),
        "nmi": float(normalized_mutual_info_score(truth, labels)),
    }
