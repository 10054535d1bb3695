"""Clusters of tasks whose classes collide, against cases computed by hand and all matchings."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mela.labeling.assignment import assign_tasks

LINE = np.array([[0.0], [3.0], [8.0]])


def on_a_line(*tasks: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    points = np.array([[value] for task in tasks for value in task])
    return points, np.concatenate([[0], np.cumsum([len(task) for task in tasks])])


def test_tasks_take_nearest_centers_and_colliding_ones_are_dropped() -> None:
    clusters, labels = assign_tasks(*on_a_line((0, 4), (1, 2), (9, 3, 6)), LINE, "drop")
    assert clusters.tolist() == [0, 1, 0, 1, 2, 1, 2]
    assert labels.tolist() == [0, 1, 0, 1, -1, -1, -1]


def test_colliding_tasks_get_their_best_matching() -> None:
    """9, 3 and 6 go to 8, 0 and 3 for 1 + 9 + 9; leaving 3 where it is would cost 1 + 0 + 36."""
    clusters, labels = assign_tasks(*on_a_line((0, 4), (1, 2), (9, 3, 6)), LINE, "assign")
    assert labels.tolist() == [0, 1, 0, 1, 2, 0, 1]
    assert clusters.tolist() == labels.tolist()


@given(seed=st.integers(0, 2**31), ways=st.integers(2, 4))
@settings(deadline=None, max_examples=40)
def test_the_matching_is_the_cheapest_of_all(seed: int, ways: int) -> None:
    rng = np.random.default_rng(seed)
    centers, points = rng.normal(size=(5, 3)), rng.normal(size=(3 * ways, 3))
    starts = np.arange(0, 3 * ways + 1, ways)
    _, labels = assign_tasks(points, starts, centers, "assign")
    for start in starts[:-1]:
        own = points[start : start + ways]
        costs = {chosen: ((own - centers[list(chosen)]) ** 2).sum() for chosen in permutations(range(5), ways)}
        found = tuple(labels[start : start + ways].tolist())
        assert costs[found] == pytest.approx(min(costs.values()))
