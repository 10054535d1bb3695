"""Constrained rivals: they keep the classes of a task apart, and find classes that are easy to find."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mela.data.array_types import Floats, Ints
from mela.labeling.pair_quality import collisions
from studies.labels import constrained, rivals


def tasks_of_gaussians(rng: np.random.Generator, apart: float) -> tuple[Floats, Ints, Ints]:
    """Return the points of 60 tasks of 3 of 8 classes, the bounds of the tasks, and the classes."""
    truth = np.concatenate([rng.permutation(8)[:3] for _ in range(60)])
    return rng.normal(size=(8, 8))[truth] * apart + rng.normal(size=(180, 8)), np.arange(0, 181, 3), truth


@pytest.mark.parametrize("method", [constrained.cop_kmeans, constrained.best_links])
def test_constrained_clusters_keep_the_classes_of_a_task_apart(method: Callable[[Floats, Ints, int], Ints]) -> None:
    rng = np.random.default_rng(0)
    points, starts, truth = tasks_of_gaussians(rng, 8)
    assert adjusted_rand_score(truth, method(points, starts, 8)) == 1
    # where classes overlap, those of a task would share clusters without it
    points, starts, truth = tasks_of_gaussians(rng, 1)
    assert collisions(rivals.kmeans(points, 8), starts) > 5
    found = method(points, starts, 8)
    assert collisions(found, starts) == 0
    assert adjusted_rand_score(truth, found) > 0.1


def test_best_links_stop_where_all_others_would_join_classes_of_a_task() -> None:
    points = np.array([[1, 0], [1, 0.01], [1, 0.02], [0, 1]])
    np.testing.assert_array_equal(constrained.best_links(points, np.array([0, 2, 4]), 1), [0, 1, 1, 0])


def test_vbx_finds_the_number_of_normal_classes() -> None:
    rng = np.random.default_rng(0)
    points, _, truth = tasks_of_gaussians(rng, 6)
    found = constrained.vbx(points - points.mean(axis=0), np.full(8, 36.0))
    assert adjusted_rand_score(truth, found) == 1
    # classes without any difference are one
    assert len(np.unique(constrained.vbx(rng.normal(size=(180, 8)), np.full(8, 36.0)))) == 1
