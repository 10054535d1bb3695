"""Nearest points, against all distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from mela.labeling import nearest_points as module
from mela.labeling.nearest_points import nearest_points


def drawn(n: int, seed: int = 0, n_classes: int = 40) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_classes, 8))[rng.integers(n_classes, size=n)] * 3 + rng.normal(size=(n, 8))


def plain(points: np.ndarray, count: int, among: np.ndarray | None = None) -> np.ndarray:
    squared = cdist(points, points if among is None else among)
    if among is None:
        np.fill_diagonal(squared, np.inf)
    return np.argsort(squared, axis=1)[:, :count]


def test_all_distances_of_few_points() -> None:
    points = drawn(900)
    assert (nearest_points(points, 12) == plain(points, 12)).mean() > 0.999
    assert (nearest_points(points[:50], 49) == plain(points[:50], 49)).all()


def test_the_nearest_of_other_points() -> None:
    points, centers = drawn(500), drawn(60, seed=1)
    assert (nearest_points(points, 5, centers) == plain(points, 5, centers)).all()


def test_place_and_unit_make_no_difference() -> None:
    points = drawn(300)
    for moved in (points * 1e150, points * 1e-150, points + 1e4):
        assert (nearest_points(moved, 3) == plain(points, 3)).mean() > 0.99


def test_no_point_is_its_own_neighbour_even_among_equal_ones() -> None:
    points = np.repeat(drawn(5), 30, axis=0)
    near = nearest_points(points, 4)
    assert (near != np.arange(150)[:, None]).all()
    assert (points[near] == points[:, None]).all()


def test_an_index_misses_few(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "EXACT", 1000)
    points = drawn(5000, n_classes=200)
    found, wanted = nearest_points(points, 10), plain(points, 10)
    shared = [len(set(one) & set(other)) for one, other in zip(found.tolist(), wanted.tolist(), strict=True)]
    assert np.mean(shared) > 9.7
    assert (found == nearest_points(points, 10)).all()
    assert capfd.readouterr() == ("", "")


def test_more_cells_are_searched_where_they_hold_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXACT", 100)
    monkeypatch.setattr(module, "SEARCHED", 1)
    near = nearest_points(drawn(400), 300)
    assert near.min() >= 0
    assert all(len(set(row)) == 300 for row in near.tolist())
