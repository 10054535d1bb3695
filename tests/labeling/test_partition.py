"""Partitions and their posterior, against sums over pairs and clusters written out."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from mela.labeling.clusters import WRONG_MEETINGS, weighted_sums
from mela.labeling.partition import Evidence, refine
from mela.labeling.size_prior import evenness, log_number, log_sizes


def drawn(seed: int, *, n_classes: int = 6, n_tasks: int = 30, distance: float = 2.0) -> tuple[Evidence, np.ndarray]:
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, 4)) * distance
    truth = np.concatenate([rng.choice(n_classes, size=3, replace=False) for _ in range(n_tasks)])
    weights = np.exp(rng.normal(size=len(truth)) / 4)
    points = centers[truth] + rng.normal(size=(len(truth), 4)) / np.sqrt(weights)[:, None]
    starts = np.arange(0, len(truth) + 1, 3)
    between = np.full(4, distance**2)
    return Evidence(points=points, weights=weights, starts=starts, between=between, rate=2 / (3 * n_tasks)), truth


def by_hand(evidence: Evidence, clusters: np.ndarray) -> float:
    total, sizes = 0.0, []
    for cluster in range(clusters.max() + 1):
        own = np.flatnonzero(clusters == cluster)
        sizes.append(len(own))
        weight = evidence.weights[own].sum()
        mean = (evidence.weights[own, None] * evidence.points[own]).sum(axis=0)
        for b, s in zip(evidence.between, mean, strict=True):
            total += 0.5 * (b * s**2 / (1 + weight * b) - np.log(1 + weight * b))
        total += len(own) * (len(own) - 1) / 2 * evidence.rate * (1 - WRONG_MEETINGS)
    for first, last in pairwise(evidence.starts):
        for one, other in combinations(clusters[first:last], 2):
            total -= np.log(1 / WRONG_MEETINGS) * (one == other >= 0)
    gamma = evenness(np.array(sizes))
    prior = log_number(len(sizes), sum(sizes), gamma) + log_sizes(np.array(sizes), gamma).sum()
    return total + float(prior)


@given(seed=st.integers(0, 2**31), n=st.integers(1, 40), integers=st.booleans())
def test_sums_of_clusters_are_those_of_a_loop(seed: int, n: int, integers: bool) -> None:
    """To the last bit, since the order of merges rests on them."""
    rng = np.random.default_rng(seed)
    clusters, points = rng.integers(-1, 4, size=n), rng.normal(size=(n, 3))
    weights = rng.integers(1, 9, size=n) if integers else rng.exponential(size=n)
    totals, sums = np.zeros(6), np.zeros((6, 3))
    for cluster, point, weight in zip(clusters, points, weights, strict=True):
        if cluster >= 0:
            totals[cluster] += weight
            sums[cluster] += point * weight
    found = weighted_sums(clusters, points, weights, 6)
    assert [part.tolist() for part in found] == [totals.tolist(), sums.tolist()]
    shorter = weighted_sums(clusters, points, weights)
    assert [len(part) for part in shorter] == [clusters.max() + 1] * 2


@given(seed=st.integers(0, 2**31), n_clusters=st.integers(1, 9), left_out=st.booleans())
@settings(deadline=None, max_examples=40)
def test_the_posterior_by_hand(seed: int, n_clusters: int, left_out: bool) -> None:
    evidence, truth = drawn(seed % 100)
    rng = np.random.default_rng(seed)
    clusters = np.unique(rng.integers(n_clusters, size=len(truth)), return_inverse=True)[1]
    if left_out:
        clusters[rng.random(len(truth)) < 0.2] = -1
        clusters = np.unique(np.append(-1, clusters), return_inverse=True)[1][1:] - 1
    if clusters.max() >= 0:
        assert evidence.log_posterior(clusters) == pytest.approx(by_hand(evidence, clusters), rel=1e-9)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 50.0])
def test_the_odds_of_merges_are_differences_of_posteriors(gamma: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the task classes one by one, under the same gamma throughout."""
    evidence, truth = drawn(1)
    monkeypatch.setattr("mela.labeling.partition.evenness", lambda counts: gamma)
    merged, merges, kept = evidence.merge(np.arange(len(truth)), gamma)
    gained = evidence.log_posterior(merged) - evidence.log_posterior(np.arange(len(truth)))
    assert kept > 50
    # a pair that met in n tasks counts n times; none that is merged here has met
    assert gained == pytest.approx(sum(odds for _, _, odds in merges[:kept]), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_refining_only_makes_partitions_more_probable(seed: int) -> None:
    evidence, truth = drawn(seed, distance=7.0)
    wrong = truth.copy()
    some = np.random.default_rng(seed).random(len(truth)) < 0.2
    wrong[some] = np.random.default_rng(seed).integers(6, size=int(some.sum()))
    found, gamma = refine(evidence, wrong)
    assert evidence.log_posterior(found) > evidence.log_posterior(wrong)
    assert adjusted_rand_score(truth, wrong) < 0.75
    assert adjusted_rand_score(truth, found) > 0.95
    assert gamma == evenness(np.bincount(found))
    again, _ = refine(evidence, found)
    assert again.tolist() == found.tolist()


def test_refining_leaves_out_what_was_left_out() -> None:
    evidence, truth = drawn(2)
    partial = truth.copy()
    partial[9:15] = -1
    found, _ = refine(evidence, partial)
    assert (found == -1).tolist() == (partial == -1).tolist()
    assert sorted(set(found[found >= 0])) == list(range(found.max() + 1))
