"""Quality without truth, against the truth."""

import numpy as np
import pytest
from sklearn.metrics.cluster import contingency_matrix

from mela.labeling.pair_quality import pair_quality


def drawn(seed: int, n_tasks: int = 3000, n_classes: int = 40, ways: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = np.concatenate([rng.choice(n_classes, size=ways, replace=False) for _ in range(n_tasks)])
    return truth, np.arange(0, n_tasks * ways + 1, ways)


def pairs_in_common(clusters: np.ndarray, truth: np.ndarray) -> tuple[float, float, float, float]:
    """From the truth: right pairs among those that share a cluster, those among the right and the wrong, all right."""
    table = contingency_matrix(clusters, truth).astype(float)
    n, sizes, classes = len(truth), table.sum(axis=1), table.sum(axis=0)
    both, shared = (table * (table - 1)).sum(), (sizes * (sizes - 1)).sum()
    right = (classes * (classes - 1)).sum()
    return both / shared, both / right, (shared - both) / (n * (n - 1) - right), right / (n * (n - 1))


def partly_wrong(truth: np.ndarray, rng: np.random.Generator, share: float) -> np.ndarray:
    return np.where(rng.random(len(truth)) < share, rng.integers(0, 40, len(truth)), truth)


CLUSTERINGS = {
    "the truth": lambda truth, rng: truth,
    "two classes in each cluster": lambda truth, rng: truth // 2,
    "five classes in each": lambda truth, rng: truth // 5,
    "each class in three clusters": lambda truth, rng: 3 * truth + rng.integers(0, 3, size=len(truth)),
    "one in ten wrong": lambda truth, rng: partly_wrong(truth, rng, 0.1),
    "half of them wrong": lambda truth, rng: partly_wrong(truth, rng, 0.5),
    "uneven": lambda truth, rng: np.where(truth < 20, truth // 10, truth),
    "nothing to do with it": lambda truth, rng: rng.integers(0, 40, len(truth)),
}


@pytest.mark.parametrize("name", CLUSTERINGS)
def test_precision_is_that_against_the_truth(name: str) -> None:
    errors = []
    for seed in range(5):
        truth, starts = drawn(seed)
        clusters = CLUSTERINGS[name](truth, np.random.default_rng(seed))
        quality = pair_quality(clusters, starts)
        precision, _, _, right = pairs_in_common(clusters, truth)
        error = 5 * quality.precision_error
        assert precision - error - right < quality.precision < precision + error
        errors.append((quality.precision - (1 - (1 - precision) / (1 - right))) / quality.precision_error)
    assert np.abs(errors).max() < 4
    assert abs(np.mean(errors)) < 1.8


def test_match_ranks_clusterings_as_the_truth_would() -> None:
    truth, starts = drawn(0, n_tasks=20_000)
    found, index = [], []
    for make in CLUSTERINGS.values():
        clusters = make(truth, np.random.default_rng(0))
        precision, recall, wrong, right = pairs_in_common(clusters, truth)
        quality = pair_quality(clusters, starts)
        corrected = np.sqrt(right * precision * recall) * (1 - wrong / recall)
        assert abs(quality.match - corrected) < 3 * quality.match_error < 0.1 * np.sqrt(right)
        found.append(quality.match)
        index.append(np.sqrt(precision * recall))
    assert np.argsort(found).tolist() == np.argsort(index).tolist()


def test_by_hand() -> None:
    """Tasks (0, 1), (0, 0), (1, 2): one of 3 known pairs shares a cluster; 3 + 1 of all 15 do."""
    quality = pair_quality(np.array([0, 1, 0, 0, 1, 2]), np.array([0, 2, 4, 6]))
    within, everywhere = 1 / 3, 4 / 15
    assert quality.precision == pytest.approx(1 - within / everywhere)
    assert quality.match == pytest.approx((everywhere - within) / np.sqrt(everywhere))
    assert quality.precision_error == pytest.approx(np.sqrt(2) / 3 / everywhere)
    assert quality.match_error == pytest.approx(np.sqrt(2) / 3 / np.sqrt(everywhere))


def test_clusters_of_one_say_nothing() -> None:
    quality = pair_quality(np.arange(6), np.array([0, 2, 4, 6]))
    assert (quality.precision, quality.match) == (1, 0)


def test_the_standard_error_covers_what_chance_does() -> None:
    """Tasks drawn again and again: the spread of the estimate is what its standard error says, and no larger."""
    estimates, errors = [], []
    for seed in range(60):
        truth, starts = drawn(seed, n_tasks=300)
        quality = pair_quality(truth // 2, starts)
        estimates.append(quality.precision)
        errors.append(quality.precision_error)
    assert 0.7 < np.std(estimates) / np.mean(errors) < 1.3


def test_what_is_left_out_shares_its_cluster_with_nobody() -> None:
    truth, starts = drawn(0, n_tasks=50)
    out = np.random.default_rng(0).random(len(truth)) < 0.2
    alone = np.where(out, truth.max() + 1 + np.arange(len(truth)), truth)
    assert pair_quality(np.where(out, -1, truth), starts) == pair_quality(alone, starts)
