"""Weights of clusters: against a plain loop, calibrated where the model holds, and at their edges."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm

from mela import memberships
from mela.memberships import LEAST, Memberships
from mela.merging import concentrations


def by_hand(
    points: np.ndarray, weights: np.ndarray, clusters: np.ndarray, k: int, between: np.ndarray, starts: np.ndarray
) -> np.ndarray:
    """The conditionals of Algorithm 3, every cluster summed anew for every task class; no entry is left out."""
    alpha = concentrations(np.array([len(np.unique(clusters[clusters >= 0]))]), int((clusters >= 0).sum()))[0]
    result = np.zeros((len(points), k))
    for first, last in pairwise(starts):
        for a in range(first, last):
            if clusters[a] < 0:
                continue
            others = {clusters[b] for b in range(first, last) if b != a}
            odds = np.full(k, -np.inf)
            for v in set(range(k)) - others:
                own = [b for b in range(len(points)) if clusters[b] == v and b != a]
                precision = weights[own].sum() + 1 / between
                mean = (weights[own, None] * points[own]).sum(axis=0) / precision
                scale = np.sqrt(1 / weights[a] + 1 / precision)
                odds[v] = np.log(len(own) or alpha) + norm.logpdf(points[a], mean, scale).sum()
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
    model = Memberships.of(points, weights, clusters, 8, between)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memberships, "BLOCK", block)
        found = model.of_tasks(points, weights, clusters, starts, members=True).toarray()
    expected = by_hand(points, weights, clusters, 8, between, starts)
    assert ((found == 0) | (found >= LEAST)).all()
    np.testing.assert_allclose(found, expected, rtol=0, atol=8 * LEAST)
    kept = np.where(expected >= 1.001 * LEAST, expected, 0)
    clear = (np.abs(expected - LEAST) > 1e-6).all(axis=1) & (clusters >= 0)
    kept = kept[clear] / kept[clear].sum(axis=1, keepdims=True)
    shown = found[clear]
    np.testing.assert_allclose(shown[kept > 0], kept[kept > 0], rtol=2e-3)
    sums = found.sum(axis=1)
    np.testing.assert_allclose(sums, clusters >= 0, rtol=0, atol=1e-12)


def test_weights_are_probabilities_where_the_model_holds() -> None:
    """Of all weights between two bounds, as large a share belongs to the true class as they say."""
    rng = np.random.default_rng(0)
    between = np.array([6.0, 2.0])
    centers = rng.normal(size=(8, 2)) * np.sqrt(between)
    truth = np.concatenate([rng.permutation(8)[:3] for _ in range(2000)])
    points = centers[truth] + rng.normal(size=(6000, 2))
    starts = np.arange(0, 6001, 3)
    model = Memberships.of(points, np.ones(6000), truth, 8, between)
    found = model.of_tasks(points, np.ones(6000), truth, starts, members=True).toarray()
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
    starts = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8])
    model = Memberships.of(points, np.ones(8), clusters, 3, np.array([100.0]))
    found = model.of_tasks(points, np.ones(8), clusters, starts, members=True).toarray()
    assert found[1, 1] > 0.99
    assert found[5, 0] > 0.9
    newcomer = model.of_tasks(points[1:2], np.ones(1), clusters[1:2], np.array([0, 1]), members=False).toarray()
    assert newcomer[0, 0] > found[1, 0]


def test_a_cluster_of_one_is_as_probable_as_a_new_class() -> None:
    points, weights = np.array([[0.0], [0.1], [0.2], [5.0]]), np.ones(4)
    clusters, starts, between = np.array([0, 0, 0, 1]), np.array([0, 1, 2, 3, 4]), np.array([9.0])
    model = Memberships.of(points, weights, clusters, 2, between)
    found = model.of_tasks(points, weights, clusters, starts, members=True).toarray()
    precision = 3 + 1 / 9
    old = 3 * norm.pdf(5, 0.3 / precision, np.sqrt(1 + 1 / precision))
    new = model.concentration * norm.pdf(5, 0, np.sqrt(10))
    assert found[3, 1] == pytest.approx(new / (new + old))


def test_clusters_of_the_other_classes_of_a_task_are_impossible() -> None:
    points = np.array([[0.0], [0.1], [0.0], [4.0], [0.1], [4.2]])
    clusters = np.array([0, 1, 0, 1, 0, 1])
    model = Memberships.of(points, np.ones(6), clusters, 3, np.array([4.0]))
    found = model.of_tasks(points, np.ones(6), clusters, np.array([0, 2, 4, 6]), members=True).toarray()
    assert found[1, 0] == 0
    alone = model.of_tasks(points, np.ones(6), clusters, np.array([0, 1, 2, 4, 6]), members=True).toarray()
    assert alone[1, 0] > 0.5


def test_points_by_themselves() -> None:
    model = Memberships(
        between=np.array([4.0, 1.0]),
        weights=np.array([10.0, 30.0]),
        sums=np.array([[20.0, 0.0], [-30.0, 15.0]]),
        counts=np.array([10, 30]),
        concentration=1.0,
    )
    points = np.array([[0.5, 0.1], [2.0, 0.0]])
    found = model.of_samples(points, 0.25)
    density = np.empty((2, 2))
    for v in range(2):
        precision = model.weights[v] + 1 / model.between
        scale = np.sqrt(4 + 1 / precision)
        density[:, v] = model.counts[v] * norm.pdf(points, model.sums[v] / precision, scale).prod(axis=1)
    np.testing.assert_allclose(found, density / density.sum(axis=1, keepdims=True), rtol=1e-12)
