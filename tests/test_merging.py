"""Merging, against enumerated posteriors and on tasks whose classes are known."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from mela import merging
from mela.discriminant import discriminant_space, noise_scales
from mela.merging import (
    Clusters,
    agglomerate,
    concentration,
    cut,
    marginal,
    meeting_odds,
    meetings,
    merge_classes,
    stop,
)


def drawn_tasks(
    seed: int, *, n_classes: int, n_tasks: int, distance: float, ways: int = 5, samples: int = 8, dimensions: int = 12
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, task class of each sample, starts, true class of each task class; classes differ in shape."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, dimensions)) * distance
    shapes = np.exp(rng.normal(size=(n_classes, dimensions)) / 3)
    truth = np.concatenate([rng.choice(n_classes, size=ways, replace=False) for _ in range(n_tasks)])
    rows = np.repeat(np.arange(len(truth)), samples)
    features = centers[truth[rows]] + rng.normal(size=(len(rows), dimensions)) * shapes[truth[rows]]
    return features, rows, np.arange(0, len(truth) + 1, ways), truth


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_classes", "n_tasks"), [(10, 40), (30, 60), (30, 400)])
def test_finds_the_classes_and_their_number(n_classes: int, n_tasks: int, seed: int) -> None:
    features, rows, starts, truth = drawn_tasks(seed, n_classes=n_classes, n_tasks=n_tasks, distance=1.5)
    found = merge_classes(features, rows, starts).assignments
    assert found.max() + 1 == n_classes
    assert adjusted_rand_score(truth, found) > 0.99


def test_from_fragments_when_there_are_many_task_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "SINGLES", 500)
    monkeypatch.setattr(merging, "FRAGMENTS", 200)
    features, rows, starts, truth = drawn_tasks(0, n_classes=20, n_tasks=300, distance=1.5)
    found = merge_classes(features, rows, starts).assignments
    used = found >= 0
    assert used.mean() > 0.95
    assert found.max() + 1 == 20
    assert adjusted_rand_score(truth[used], found[used]) > 0.99


def test_the_second_round_joins_what_the_first_left_apart() -> None:
    features, rows, starts, truth = drawn_tasks(1, n_classes=6, n_tasks=400, distance=3, dimensions=6)
    features[np.isin(rows, np.flatnonzero(truth == 0)), 0] *= 4
    found = merge_classes(features, rows, starts)
    assert found.fragments > 6
    assert found.assignments.max() + 1 == 6


def test_rotation_shift_and_scale_leave_the_partition() -> None:
    features, rows, starts, _ = drawn_tasks(2, n_classes=10, n_tasks=60, distance=1.5)
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(12, 12)))[0]
    plain = merge_classes(features, rows, starts).assignments
    moved = merge_classes(7 * features @ rotation + 3, rows, starts).assignments
    assert adjusted_rand_score(plain, moved) == 1


def test_marginal_is_that_of_normal_classes() -> None:
    # x_i ~ N(mu, 1), mu ~ N(0, b): the odds of one class against two from the joint densities themselves
    b, left, right = 2.5, np.array([0.3, -0.2, 0.9]), np.array([1.4, 1.1])

    def density(x: np.ndarray) -> float:
        return float(multivariate_normal.logpdf(x, np.zeros(len(x)), np.eye(len(x)) + b))

    def closed(x: np.ndarray) -> float:
        return float(marginal(np.array([float(len(x))]), np.array([[x.sum()]]), np.array([b]))[0])

    both = np.concatenate([left, right])
    assert closed(both) - closed(left) - closed(right) == pytest.approx(density(both) - density(left) - density(right))


def test_meetings_by_hand() -> None:
    met = meetings(np.array([0, 1, 1, 2, 0, 2, -1, -1]), np.array([0, 2, 4, 6, 8]), 3)
    assert met.tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    odds = meeting_odds(np.array([0.0, 2.0], dtype=np.float32), 10.0, np.array([20.0, 20.0]), 0.01, wrong=0.01)
    assert odds == pytest.approx([2 * 0.99, 2 * 0.99 - 2 * np.log(100)])


def test_a_meeting_keeps_two_alike_apart() -> None:
    def run(met: float) -> int:
        clusters = Clusters(
            weights=np.array([5.0, 5.0]),
            sums=np.array([[5.0], [5.0]]),
            counts=np.array([5.0, 5.0]),
            meetings=np.array([[0, met], [met, 0]], dtype=np.float32),
        )
        return len(agglomerate(clusters, np.array([10.0]), 0.01))

    assert run(0) == 1
    assert run(5) == 0


def test_cut_follows_chains() -> None:
    assert cut(5, [(1, 0, 3.0), (2, 1, 2.0), (3, 2, 1.0)]).tolist() == [0, 0, 0, 0, 1]
    assert cut(3, []).tolist() == [0, 1, 2]


def test_stop_agrees_with_its_own_concentration() -> None:
    merges = [(i, i + 100, float(odds)) for i, odds in enumerate(np.linspace(20, 0.1, 90))]
    kept, alpha = stop(200, 1000, merges)
    assert 0 < kept < 90
    assert all(merge[2] > np.log(alpha) for merge in merges[:kept])
    assert merges[kept][2] <= np.log(alpha) + 0.25
    assert alpha * np.log1p(1000 / alpha) == pytest.approx(200 - kept, rel=0.01)


def test_concentration_with_as_many_clusters_as_draws() -> None:
    assert concentration(10, 10) == 10


def test_space_drops_what_noise_alone_would_show() -> None:
    rng = np.random.default_rng(0)
    features, rows, _, truth = drawn_tasks(3, n_classes=20, n_tasks=200, distance=0.0)
    features[:, :3] += (rng.normal(size=(20, 3)) * 3)[truth[rows]]
    means = np.stack([features[rows == row].mean(axis=0) for row in range(len(truth))])
    residuals = features - means[rows]
    space = discriminant_space(means, np.bincount(rows), residuals.T @ residuals)
    assert space.components.shape == (12, 3)
    within = residuals @ space.components / np.sqrt(8)
    np.testing.assert_allclose(within.T @ within / (len(rows) - len(truth)), np.eye(3), atol=1e-4)


def test_noise_scales_shrink_to_one_when_chance_explains_them() -> None:
    rng = np.random.default_rng(0)
    rows, freedom = np.repeat(np.arange(300), 6), np.full(300, 5.0)
    equal = noise_scales(rng.chisquare(10, size=1800) * 5 / 6, rows, freedom, 10)
    assert equal.std() < 0.05
    scale = np.repeat(rng.choice([0.5, 1.5], size=300), 6)
    unequal = noise_scales(scale * rng.chisquare(10, size=1800) * 5 / 6, rows, freedom, 10)
    # variances: 0.25 of the scales, 0.05 of their estimates from 50 degrees of freedom; sqrt(0.25 / 0.3) = 0.91
    assert np.corrcoef(unequal, scale[::6])[0, 1] == pytest.approx(0.91, abs=0.03)
