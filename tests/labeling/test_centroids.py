"""Blocked passes, against the plain loop."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mela.labeling.centroids import Centroids, nearest, norms
from mela.labeling.pruning import run_pass


def closest(point: np.ndarray, centroids: np.ndarray) -> int:
    return int(((point.astype(np.float64) - centroids.astype(np.float64)) ** 2).sum(axis=1).argmin())


def plain_loop(
    means: np.ndarray, sizes: np.ndarray, starts: np.ndarray, order: np.ndarray, centroids: np.ndarray
) -> tuple[list[int], np.ndarray, np.ndarray, np.ndarray]:
    centroids = centroids.copy()
    weights, counts, matched = np.ones(len(centroids)), np.zeros(len(centroids), dtype=np.int64), []
    for task in order:
        rows = range(starts[task], starts[task + 1])
        found = [closest(means[row], centroids) for row in rows]
        if len(set(found)) < len(found):
            continue
        for row, v in zip(rows, found, strict=True):
            old, new = means.dtype.type(weights[v]), means.dtype.type(sizes[row])
            centroids[v] = (old * centroids[v] + new * means[row]) / (old + new)
            weights[v] += sizes[row]
            counts[v] += 1
        matched.append(int(task))
    return matched, centroids, weights, counts


def problem(seed: int, dtype: Any, *, grid: bool = False) -> dict[str, Any]:
    """Tasks of 2 to 5 classes; on a grid, distances tie all the time."""
    rng = np.random.default_rng(seed)
    ways = rng.integers(2, 6, size=60)
    starts = np.concatenate([[0], np.cumsum(ways)])
    hidden = rng.normal(size=(12, 7)) * 3
    classes = np.concatenate([rng.choice(12, size=k, replace=False) for k in ways])
    means = hidden[classes] + rng.normal(size=(starts[-1], 7))
    means = (np.round(means) if grid else means).astype(dtype)
    sizes = rng.integers(1, 21, size=starts[-1])
    return {"means": means, "sizes": sizes, "starts": starts, "order": rng.permutation(60)}


def blocked(tasks: dict[str, Any], first: Any, *, block_rows: int) -> tuple[list[int], Any, np.ndarray, np.ndarray]:
    moving = Centroids(first, float(norms(tasks["means"]).max()))
    weights, counts = np.ones(len(moving)), np.zeros(len(moving), dtype=np.int64)
    matched, _ = run_pass(**tasks, centroids=moving, weights=weights, counts=counts, block_rows=block_rows)
    return matched.tolist(), moving.points, weights, counts


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("grid", [False, True])
@pytest.mark.parametrize("block_rows", [1, 7, 64, 10_000])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_equals_the_plain_loop(seed: int, block_rows: int, grid: bool, dtype: Any) -> None:
    tasks = problem(seed, dtype, grid=grid)
    first = tasks["means"][:20].copy()
    found = blocked(tasks, first, block_rows=block_rows)
    assert len(found[0]) > 0
    for one, expected in zip(found, plain_loop(**tasks, centroids=first), strict=True):
        np.testing.assert_array_equal(one, expected)
    assert found[1].dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_same_lines_run_on_torch(dtype: Any) -> None:
    tasks = problem(3, dtype)
    first = tasks["means"][:20].copy()
    matched, centroids, weights, counts = blocked(tasks, first, block_rows=64)
    as_torch = tasks | {"means": torch.from_numpy(tasks["means"])}
    found = blocked(as_torch, torch.from_numpy(first), block_rows=64)
    assert isinstance(found[1], torch.Tensor)
    for one, expected in zip(found, (matched, centroids, weights, counts), strict=True):
        np.testing.assert_array_equal(one, expected)
    np.testing.assert_array_equal(nearest(as_torch["means"], torch.from_numpy(first)), nearest(tasks["means"], first))


def test_assignments_are_those_of_the_visit() -> None:
    """The second task collides, the third is not visited."""
    means = np.array([[0.0], [10], [3], [2], [1], [9]])
    moving = Centroids(np.array([[0.0], [8]]), 10.0)
    starts, weights, counts = np.array([0, 2, 4, 6]), np.ones(2), np.zeros(2, dtype=np.int64)
    sizes, order = np.ones(6, dtype=np.int64), np.array([1, 0])
    matched, assignments = run_pass(means, sizes, starts, order, moving, weights, counts)
    assert matched.tolist() == [0]
    assert assignments.tolist() == [0, 1, 0, 0, -1, -1]
    np.testing.assert_array_equal(moving.points, [[0], [9]])


def test_the_arguments_stay_as_they_were() -> None:
    tasks = problem(0, np.float64)
    means, first = tasks["means"].copy(), tasks["means"][:20].copy()
    blocked(tasks, first, block_rows=16)
    np.testing.assert_array_equal(tasks["means"], means)
    np.testing.assert_array_equal(first, means[:20])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_true_tie_goes_to_the_lowest_index(dtype: Any) -> None:
    centroids = np.array([[2.0, 0], [0, 2], [-2, 0], [0, 2]], dtype=dtype)
    points = np.array([[0.0, 0], [1, 1], [-1, 1], [0, 3]], dtype=dtype)
    assert nearest(points, centroids).tolist() == [0, 0, 1, 1]


def test_float32_far_from_the_origin_is_decided_in_float64() -> None:
    # |x|^2 is 1e8 here: differences of the scores are far below the rounding of float32
    rng = np.random.default_rng(0)
    centroids = (1e4 + rng.normal(size=(50, 3))).astype(np.float32)
    points = (1e4 + rng.normal(size=(40, 3))).astype(np.float32)
    assert nearest(points, centroids).tolist() == [closest(point, centroids) for point in points]
    by_scores = (points @ centroids.T - (centroids**2).sum(axis=1) / 2).argmax(axis=1)
    assert by_scores.tolist() != nearest(points, centroids).tolist()
