"""Weights of clusters: against a plain loop, calibrated where the model holds, and at their edges."""

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm

from mela.labeling import memberships
from mela.labeling.memberships import LEAST, Memberships
from mela.labeling.size_prior import log_number

GAMMA = 2.5


def by_hand_odds(
    points: np.ndarray, weights: np.ndarray, clusters: np.ndarray, k: int, between: np.ndarray, a: int
) -> np.ndarray:
    """Log odds of the clusters for task class a, every cluster summed anew without it."""
    number, n = len(np.unique(clusters[clusters >= 0])), int((clusters >= 0).sum())
    novelty = GAMMA * np.exp(log_number(number, n, GAMMA) - log_number(number - 1, n, GAMMA))
    odds = np.empty(k)
    for v in range(k):
        own = [b for b in range(len(points)) if clusters[b] == v and b != a]
        precision = weights[own].sum() + 1 / between
        mean = (weights[own, None] * points[own]).sum(axis=0) / precision
        scale = np.sqrt(1 / weights[a] + 1 / precision)
        odds[v] = np.log(len(own) + GAMMA if own else novelty) + norm.logpdf(points[a], mean, scale).sum()
    return odds


def by_hand(
    points: np.ndarray, weights: np.ndarray, clusters: np.ndarray, k: int, between: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """The posteriors, the clusters of the others of a task being impossible; no entry is left out."""
    result = np.zeros((len(points), k))
    for first, last in pairwise(starts):
        for a in range(first, last):
            if clusters[a] < 0:
                continue
            odds = by_hand_odds(points, weights, clusters, k, between, a)
            odds[[clusters[b] for b in range(first, last) if b != a]] = -np.inf
            result[a] = np.exp(odds - logsumexp(odds))
    return result


def tasks(seed: int, *, n_classes: int = 6, n_tasks: int = 25) -> tuple[np.ndarray, ...]:
    """Task classes of a mixture, their weights, their classes with some mistakes and gaps, bounds, and b."""
    rng = np.random.default_rng(seed)
    between = np.array([6.0, 2.0, 0.7])
    centers = rng.normal(size=(n_classes, 3)) * np.sqrt(between)
    ways = rng.integers(2, 5, size=n_tasks)
    truth = np.concatenate([rng.choice(n_classes, size=way, replace=False) for way in ways])
    weights = rng.choice([0.5, 1.0, 1.5], size=len(truth))
    points = centers[truth] + rng.normal(size=(len(truth), 3)) / np.sqrt(weights)[:, None]
    starts = np.concatenate([[0], np.cumsum(ways)])
    clusters = truth.copy()
    clusters[: starts[1]] = rng.choice(n_classes, size=ways[0], replace=False)
    clusters[starts[3] : starts[4]] = -1
    return points, weights, clusters, starts, between


@given(seed=st.integers(0, 2**31), block=st.integers(1, 40))
@settings(deadline=None, max_examples=15)
def test_equal_to_a_plain_loop(seed: int, block: int) -> None:
    points, weights, clusters, starts, between = tasks(seed)
    model = Memberships.of(points, weights, clusters, 8, between, GAMMA)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memberships, "BLOCK", block)
        found = model.of_tasks(points, weights, clusters, starts, members=True).toarray()
    expected = by_hand(points, weights, clusters, 8, between, starts)
    assert ((found == 0) | (found >= LEAST)).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=8 * LEAST)
    kept = np.where(expected >= 1.001 * LEAST, expected, 0)
    clear = (np.abs(expected - LEAST) > 1e-6).all(axis=1) & (clusters >= 0)
    kept = kept[clear] / kept[clear].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found[clear][kept > 0], kept[kept > 0], rtol=2e-3)
    np.testing.assert_allclose(found.sum(axis=1), clusters >= 0, rtol=0, atol=1e-12)


def test_what_else_is_known_is_multiplied_in() -> None:
    points, weights, clusters, starts, between = tasks(3)
    model, rng = Memberships.of(points, weights, clusters, 8, between, GAMMA), np.random.default_rng(0)
    known = rng.normal(size=(len(points), 8))
    found = model.of_tasks(points, weights, clusters, starts, members=True, more=lambda rows: known[rows]).toarray()
    expected = by_hand(points, weights, clusters, 8, between, starts) * np.exp(known)
    used = clusters >= 0
    expected[used] /= expected[used].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=0, atol=8 * LEAST)
    assert np.abs(found - by_hand(points, weights, clusters, 8, between, starts)).max() > 0.2


def weights_of(
    points: np.ndarray, clusters: np.ndarray, k: int, between: np.ndarray, gamma: float, starts: Any
) -> tuple[Memberships, np.ndarray]:
    """A model of task classes of weight 1, and the weights of the clusters for each of them."""
    alike = np.ones(len(points))
    model = Memberships.of(points, alike, clusters, k, between, gamma)
    return model, model.of_tasks(points, alike, clusters, np.asarray(starts), members=True).toarray()


def test_weights_are_probabilities_where_the_model_holds() -> None:
    """Of all weights between two bounds, as large a share belongs to the true class as they say."""
    rng = np.random.default_rng(0)
    between = np.array([6.0, 2.0])
    centers = rng.normal(size=(8, 2)) * np.sqrt(between)
    truth = np.concatenate([rng.permutation(8)[:3] for _ in range(2000)])
    points = centers[truth] + rng.normal(size=(6000, 2))
    _, found = weights_of(points, truth, 8, between, 1000.0, np.arange(0, 6001, 3))
    right = np.zeros_like(found, dtype=bool)
    right[np.arange(6000), truth] = True
    assert 0.2 < found[right].mean() < 0.8, "the case should leave doubts"
    bounds = [0.002, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98]
    for low, high in pairwise(bounds):
        inside = (found >= low) & (found < high)
        assert inside.sum() > 100
        error = np.sqrt((found[inside] * (1 - found[inside])).sum()) / inside.sum()
        assert abs(right[inside].mean() - found[inside].mean()) < 4 * error, (low, high)


def test_a_task_class_does_not_vouch_for_itself() -> None:
    """One far from its cluster, where another lies, keeps little weight there, though it makes up half of it."""
    points = np.array([[0.0], [9.0], [9.1], [8.9], [9.0], [0.1], [30.0], [29.0]])
    clusters = np.array([0, 0, 1, 1, 1, 1, 2, 2])
    model, found = weights_of(points, clusters, 3, np.array([100.0]), 1.0, range(9))
    assert found[1, 1] > 0.99
    assert found[5, 0] > 0.9
    newcomer = model.of_tasks(points[1:2], np.ones(1), clusters[1:2], np.array([0, 1]), members=False).toarray()
    assert newcomer[0, 0] > found[1, 0]


def test_a_cluster_of_one_is_as_probable_as_a_new_class() -> None:
    points, clusters = np.array([[0.0], [0.1], [0.2], [5.0]]), np.array([0, 0, 0, 1])
    model, found = weights_of(points, clusters, 2, np.array([9.0]), GAMMA, range(5))
    precision = 3 + 1 / 9
    old = (3 + GAMMA) * norm.pdf(5, 0.3 / precision, np.sqrt(1 + 1 / precision))
    new = model.novelty * norm.pdf(5, 0, np.sqrt(10))
    assert found[3, 1] == pytest.approx(new / (new + old))


def test_clusters_of_the_other_classes_of_a_task_are_impossible() -> None:
    points = np.array([[0.0], [0.1], [0.0], [4.0], [0.1], [4.2]])
    clusters = np.array([0, 1, 0, 1, 0, 1])
    _, found = weights_of(points, clusters, 3, np.array([4.0]), 1.0, [0, 2, 4, 6])
    assert found[1, 0] == 0
    _, alone = weights_of(points, clusters, 3, np.array([4.0]), 1.0, [0, 1, 2, 4, 6])
    assert alone[1, 0] > 0.5


def test_points_by_themselves() -> None:
    model = Memberships(
        between=np.array([4.0, 1.0]),
        weights=np.array([10.0, 30.0]),
        sums=np.array([[20.0, 0.0], [-30.0, 15.0]]),
        counts=np.array([10, 30]),
        gamma=GAMMA,
    )
    points = np.array([[0.5, 0.1], [2.0, 0.0]])
    found = model.of_samples(points, 0.25)
    density = np.empty((2, 2))
    for v in range(2):
        precision = model.weights[v] + 1 / model.between
        scale = np.sqrt(4 + 1 / precision)
        density[:, v] = (model.counts[v] + GAMMA) * norm.pdf(points, model.sums[v] / precision, scale).prod(axis=1)
    np.testing.assert_allclose(found, density / density.sum(axis=1, keepdims=True), rtol=1e-12)


def test_the_best_clusters_of_a_task_are_those_of_all_permutations() -> None:
    points, weights, clusters, starts, between = tasks(3)
    model = Memberships.of(points, weights, clusters, 8, between, GAMMA)
    best = model.best(points, weights, clusters, starts)
    assert (best == -1).tolist() == (clusters == -1).tolist()
    assert (best != clusters).any()
    for first, last in pairwise(starts):
        if clusters[first] < 0:
            continue
        alone = [by_hand_odds(points, weights, clusters, 8, between, a) for a in range(first, last)]
        scores = {
            chosen: sum(odds[v] for odds, v in zip(alone, chosen, strict=True))
            for chosen in permutations(range(8), int(last - first))
        }
        assert scores[tuple(best[first:last].tolist())] == pytest.approx(max(scores.values()), rel=1e-9)


def test_more_classes_in_a_task_than_clusters() -> None:
    points, clusters = np.array([[0.0], [0.2], [5.0], [5.1], [0.1], [4.9]]), np.array([0, 0, 1, 1, 0, 1])
    model = Memberships.of(points, np.ones(6), clusters, 2, np.array([9.0]), 1.0)
    assert model.best(points, np.ones(6), clusters, np.array([0, 4, 6])).tolist() == clusters.tolist()
