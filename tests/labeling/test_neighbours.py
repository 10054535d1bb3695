"""Distances by shared neighbours, against the plain loop over points and sets."""

import numpy as np
import pytest
from scipy.spatial.distance import squareform

from mela.labeling import neighbours
from mela.labeling.neighbours import AVERAGED, NEIGHBOURS, closeness_of_many, shared_neighbours
from mela.labeling.pair_scores import PairScores, SquaredDistances


def plain(points: np.ndarray) -> np.ndarray:
    """The four steps as they are written, with sets and a dictionary of weights for each point."""
    n = len(points)
    squared = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    order = np.argsort(squared, axis=1, kind="stable")

    def mutual(i: int, k: int) -> set[int]:
        return {int(j) for j in order[i, : k + 1] if i in order[j, : k + 1]}

    k = min(NEIGHBOURS, n - 1)
    weights = np.zeros((n, n))
    for i in range(n):
        own = mutual(i, k)
        joined = set(own)
        for j in own:
            theirs = mutual(j, NEIGHBOURS // 2)
            if len(theirs & own) > 2 / 3 * len(theirs):
                joined |= theirs
        for j in joined:
            weights[i, j] = np.exp(-squared[i, j] / squared[i].max())
        weights[i] /= weights[i].sum()
    described = np.array([weights[order[i, :AVERAGED]].mean(axis=0) for i in range(n)])
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            found[i, j] = (
                1 - np.minimum(described[i], described[j]).sum() / np.maximum(described[i], described[j]).sum()
            )
    return found


@pytest.mark.parametrize("n", [4, 9, 60])
def test_as_the_plain_loop(n: int) -> None:
    rng = np.random.default_rng(n)
    points = rng.normal(size=(n, 3)) + rng.normal(size=(5, 3))[rng.integers(5, size=n)] * 2
    np.testing.assert_allclose(squareform(shared_neighbours(SquaredDistances(points))), plain(points), atol=1e-12)


def test_of_many_points_only_those_that_share_neighbours_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(400, 6)) + rng.normal(size=(30, 6))[rng.integers(30, size=400)] * 3
    wanted = 1 - squareform(shared_neighbours(SquaredDistances(points)))
    monkeypatch.setattr(neighbours, "SAMPLE", 400)
    found = closeness_of_many(points)
    np.testing.assert_allclose(found.toarray(), np.triu(wanted, 1), atol=1e-9)
    assert found.nnz == (np.triu(wanted, 1) > 0).sum()
    monkeypatch.setattr(neighbours, "PAIRS", 50)
    np.testing.assert_allclose(closeness_of_many(points).toarray(), found.toarray(), atol=1e-15)
    # the farthest of some is a little nearer than the farthest of all
    monkeypatch.setattr(neighbours, "SAMPLE", 40)
    assert np.abs(closeness_of_many(points).toarray() - found.toarray()).max() < 0.05


def test_order_size_and_place_make_no_difference() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(700, 8))
    mixed = rng.permutation(len(points))
    found = squareform(shared_neighbours(SquaredDistances(points)))
    again = squareform(shared_neighbours(SquaredDistances(3 * points[mixed] + 7)))
    np.testing.assert_allclose(again, found[np.ix_(mixed, mixed)], atol=1e-9)


def test_a_look_that_moves_some_of_a_class_away_leaves_its_neighbours() -> None:
    """Two looks of one class lie far apart, but chains of neighbours join each of them."""
    rng = np.random.default_rng(0)
    line = np.linspace(0, 30, 60)[:, None] * np.eye(2)[0] + rng.normal(size=(60, 2)) * 0.1
    far = squareform(shared_neighbours(SquaredDistances(line)))
    assert far[0, 1] < 0.9
    assert far[0, 59] == 1


@pytest.mark.parametrize("points", [np.zeros((5, 2)), np.zeros((40, 2))])
def test_equal_points_are_at_finite_distances(points: np.ndarray) -> None:
    assert np.isfinite(shared_neighbours(SquaredDistances(points))).all()


@pytest.mark.parametrize("size", [1.0, 1e-160])
@pytest.mark.parametrize("owners", [np.array([0, 0]), np.array([0, 1])])
def test_a_single_pair_is_at_a_finite_distance(owners: np.ndarray, size: float) -> None:
    for seed in range(20):
        distances = SquaredDistances(size * np.random.default_rng(seed).normal(size=(2, 5)))
        for found in (distances, PairScores.of_owners(distances, owners)):
            assert np.isfinite(shared_neighbours(found)).all()
