"""How well inferred labels match the truth."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def majority_accuracy(clusters: Ints, truth: Ints) -> float:
    """Share of samples whose true class is the most frequent one of their cluster (clustering accuracy, purity).

    Parameters
    ----------
    clusters, truth : int64 (n,)
        Cluster and true class of each sample, from 0.
    """
    return _majority(_contingency(clusters, truth))


def partition_scores(labels: Ints, truth: Ints) -> dict[str, float]:
    """Purity in percent, adjusted Rand index and normalised mutual information of two labellings (n,).

    By the definitions of scikit-learn, whose import would take longer than all else that scoring does.
    """
    table = _contingency(labels, truth)
    return {"purity": 100 * _majority(table), "ari": _adjusted_rand(table), "nmi": _mutual_information(table)}


def _contingency(labels: Ints, truth: Ints) -> Ints:
    """Samples of each label in each class (n_labels, n_classes)."""
    table = np.zeros((labels.max() + 1, truth.max() + 1), dtype=np.int64)
    np.add.at(table, (labels, truth), 1)
    return table


def _majority(table: Ints) -> float:
    return float(table.max(axis=1).sum() / table.sum())


def _adjusted_rand(table: Ints) -> float:
    """Pairs on which both agree, corrected for chance (Hubert and Arabie, "Comparing Partitions", 1985)."""
    n = int(table.sum())
    both, labels, truth = (int((counts**2).sum()) for counts in (table, table.sum(axis=1), table.sum(axis=0)))
    together, only_labels, only_truth = both - n, labels - both, truth - both
    if not only_labels and not only_truth:
        return 1.0
    apart = n**2 - n - together - only_labels - only_truth
    # exact in Python's integers, which the products of two numbers of pairs need
    chance = (together + only_truth) * (only_truth + apart) + (together + only_labels) * (only_labels + apart)
    return 2 * (together * apart - only_truth * only_labels) / chance


def _mutual_information(table: Ints) -> float:
    """Mutual information over the mean of the two entropies; 1 where both labellings have a single label."""
    shares = table / table.sum()
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    entropies = _entropy(rows) + _entropy(columns)
    if not entropies:
        return 1.0
    here = np.nonzero(table)
    mutual = float((shares[here] * np.log(shares[here] / (rows[here[0]] * columns[here[1]]))).sum())
    return max(0.0, 2 * mutual / entropies)


def _entropy(shares: Floats) -> float:
    some = shares[shares > 0]
    return -float((some * np.log(some)).sum())
