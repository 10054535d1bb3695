"""Shifts that all classes of a task share: seen where there are some, and nowhere else."""

import warnings

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from mela.labeling.pair_quality import pair_quality
from mela.labeling.shifts import find_shifts

WAYS, DIRECTIONS = 5, 3
ALMOST_EQUAL = np.random.default_rng(0).normal(size=(3, 4)).repeat(2, axis=0) * [[1 - 1e-16 * i] for i in range(6)]


def tasks(
    seed: int, *, shift: float, n_tasks: int = 150, m: int = 30, effect: float = 0.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of task classes of 20 classes drawn with replacement, the bounds of tasks, and their shifts."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.normal(size=(m, m)))[0][:DIRECTIONS]
    # of different classes the mean product would be less than 0
    truth = rng.choice(20, n_tasks * WAYS)
    means = rng.normal(size=(20, m))[truth] + rng.normal(size=(len(truth), m)) * effect
    shifts = np.repeat(rng.normal(size=(n_tasks, DIRECTIONS)) @ axes * shift, WAYS, axis=0)
    return means + shifts, np.arange(0, len(truth) + 1, WAYS), shifts


def without_shifts(means: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return find_shifts(means, starts).subtract(means, starts)


def covariance(points: np.ndarray, starts: np.ndarray) -> float:
    """The covariance of two classes of a task, averaged over the coordinates."""
    centered = points - points.mean(axis=0)
    sums = np.add.reduceat(centered, starts[:-1], axis=0)
    squares = np.add.reduceat(centered**2, starts[:-1], axis=0)
    ways = np.diff(starts)[:, None]
    return float(((sums**2 - squares) / (ways * (ways - 1))).mean())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [2.0, 5.0, 50.0])
def test_shifts_are_found(shift: float, seed: int) -> None:
    means, starts, shifts = tasks(seed, shift=shift)
    found = means - without_shifts(means, starts)
    left = ((found - (shifts - shifts.mean(axis=0))) ** 2).sum() / len(shifts)
    # the classes of a task do not average out: their mean varies by this much in each direction
    chance = DIRECTIONS * (1 + 0.5**2) / WAYS
    assert left < 1.5 * chance
    assert left < 0.5 * (shifts**2).sum() / len(shifts)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [2.0, 5.0, 50.0])
def test_what_is_left_in_a_task_is_as_derived(shift: float, seed: int) -> None:
    """Along shifted directions its classes are alike by Theta, and then a little apart."""
    means, starts, shifts = tasks(seed, shift=shift, n_tasks=2000)
    axes = np.linalg.svd(shifts, full_matrices=False)[2][:DIRECTIONS]
    apart = np.cov((means - shifts).T) / WAYS
    alike = shift**2 * axes.T @ axes
    assert covariance(means @ axes.T, starts) == pytest.approx(shift**2, rel=0.15)
    left = covariance(without_shifts(means, starts) @ axes.T, starts)
    derived = axes @ (-alike @ np.linalg.inv(alike + apart) @ apart) @ axes.T
    assert left == pytest.approx(derived.trace() / DIRECTIONS, abs=0.02)
    rest = np.linalg.svd(axes)[2][DIRECTIONS:]
    assert abs(covariance(without_shifts(means, starts) @ rest.T, starts)) < 0.02


@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_is_shifted_nothing_is_taken_away(seed: int) -> None:
    means, starts, _ = tasks(seed, shift=0.0)
    taken = means - without_shifts(means, starts)
    assert (taken**2).sum() < 0.005 * (means**2).sum()


@pytest.mark.parametrize("seed", range(4))
def test_pairs_in_tasks_are_no_evidence_for_clusters_of_nothing(seed: int) -> None:
    """Whole means taken away make it seem so, since each class then lies apart from the others of its task."""
    rng = np.random.default_rng(seed)
    starts = np.arange(0, 401, WAYS)
    means = rng.normal(size=(400, 40)) + np.repeat(rng.normal(size=(80, 40)) * [10, *[0] * 39], WAYS, axis=0)
    whole = means - np.repeat(np.add.reduceat(means, starts[:-1], axis=0) / WAYS, WAYS, axis=0)
    seeming, found = (
        pair_quality(fcluster(linkage(points, "ward"), 20, "maxclust").astype(np.int64) - 1, starts)
        for points in (whole, without_shifts(means, starts))
    )
    assert seeming.match > 2 * seeming.match_error, "which would be believed"
    assert abs(found.match) < 3 * found.match_error


def test_it_turns_with_the_features_and_scales_with_them() -> None:
    means, starts, _ = tasks(0, shift=3.0)
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(30, 30)))
    found = without_shifts(means, starts)
    np.testing.assert_allclose(without_shifts(means @ turn, starts), found @ turn, atol=1e-8)
    np.testing.assert_allclose(without_shifts(1000 * means, starts), 1000 * found, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(without_shifts(means + 7, starts), found + 7, atol=1e-8)


@pytest.mark.slow
def test_variances_of_shifts_are_not_exaggerated_by_few_tasks() -> None:
    """The largest of 80 eigenvalues of 40 tasks is far too large; on average over seeds it is corrected."""
    m, n_tasks, kin = 80, 40, 1.0
    found, raw = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        shifts = np.pad(rng.normal(size=(n_tasks, 1)) * np.sqrt(kin), ((0, 0), (0, m - 1)))
        means = rng.normal(size=(n_tasks * WAYS, m)) + shifts.repeat(WAYS, axis=0)
        found.append(find_shifts(means, np.arange(0, len(means) + 1, WAYS)).variances.sum())
        tasks = means.reshape(n_tasks, WAYS, m).mean(axis=1)
        raw.append(np.linalg.eigvalsh(np.cov(tasks.T)).max() - 1 / WAYS)
    # what is seen of the shift is shrunk by the squared cosine of its direction
    assert 0.5 * kin < np.mean(found) < 1.05 * kin
    assert np.mean(raw) > 1.3 * kin


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_powers_of_features_stay_in_range(unit: float) -> None:
    means, starts, _ = tasks(0, shift=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = without_shifts(means * unit, starts)
    np.testing.assert_allclose(found / unit, without_shifts(means, starts), rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 5])
def test_chance_in_few_tasks_is_seldom_taken_for_shifts(m: int) -> None:
    seen = 0
    for seed in range(100):
        means, starts, _ = tasks(seed, shift=0.0, n_tasks=12, m=max(m, DIRECTIONS))
        seen += len(find_shifts(means[:, :m], starts).variances) > 0
    # one in 20 is what 19 deals leave to chance
    assert seen <= 12


def test_tasks_of_different_ways() -> None:
    means, starts, shifts = tasks(0, shift=5.0, n_tasks=200)
    kept = np.concatenate([np.arange(first, first + 2 + number % 4) for number, first in enumerate(starts[:-1])])
    bounds = np.concatenate([[0], np.cumsum(2 + np.arange(200) % 4)])
    found, true = means[kept] - without_shifts(means[kept], bounds), shifts[kept]
    assert np.corrcoef(found.ravel(), true.ravel())[0, 1] > 0.95
    # more classes tell more of their task's shift
    lost = ((found - true) ** 2).sum(axis=1)[bounds[:-1]]
    ways = np.diff(bounds)
    assert [lost[ways == way].mean() / (DIRECTIONS * 1.25 / way) for way in (2, 3, 4, 5)] == pytest.approx(
        [1, 1, 1, 1], abs=0.5
    )


@pytest.mark.parametrize(
    ("means", "starts"),
    [
        (np.random.default_rng(0).normal(size=(5, 3)), [0, 5]),
        (np.random.default_rng(0).normal(size=(5, 3)), [0, 1, 2, 3, 4, 5]),
        (np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 2, axis=0), [0, 2, 4, 6]),
        (ALMOST_EQUAL, [0, 2, 4, 6]),
        (np.random.default_rng(0).normal(size=(4, 1)), [0, 2, 4]),
    ],
    ids=[
        "one task",
        "tasks of one class",
        "classes that do not differ",
        "classes that differ by rounding",
        "almost nothing",
    ],
)
def test_little_data_is_left_as_it_is_or_finite(means: np.ndarray, starts: list[int]) -> None:
    found = without_shifts(means, np.array(starts))
    assert np.isfinite(found).all()
    if means.shape[1] > 1:
        np.testing.assert_array_equal(found, means)
