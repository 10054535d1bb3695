"""Pruning, against Algorithm 2 written as plain loops and against cases computed by hand."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mela.errors import MelaError
from mela.labeling.assignment import assign_tasks
from mela.labeling.pruning import prune_clusters
from mela.labeling.task_classes import ClassMeans

Task = list[tuple[list[float], int]]


@dataclass
class Found:
    centroids: np.ndarray
    counts: np.ndarray
    assignments: np.ndarray
    clustered: np.ndarray
    path: list[Any]


def learn_labels(classes: ClassMeans, *, guard: bool = False, **values: Any) -> Found:
    """Algorithm 2 to the letter, and the clusters of all tasks afterwards."""
    pruned = prune_clusters(classes, guard=guard, **values)
    assignments, labels = assign_tasks(classes.means, classes.starts, pruned.centroids, "drop")
    return Found(pruned.centroids, pruned.counts, assignments, labels >= 0, pruned.path)


def as_classes(tasks: list[Task]) -> ClassMeans:
    """Task classes from (mean, size) pairs; tasks are numbered from 0."""
    ways = [len(task) for task in tasks]
    return ClassMeans(
        task_ids=np.repeat(np.arange(len(tasks)), ways),
        starts=np.concatenate([[0], np.cumsum(ways)]),
        means=np.array([mean for task in tasks for mean, _ in task], dtype=np.float64),
        sizes=np.array([size for task in tasks for _, size in task]),
    )


def on_a_line(*tasks: tuple[float, ...], size: int = 1) -> ClassMeans:
    return as_classes([[([value], size) for value in task] for task in tasks])


def nearest(point: list[float], centroids: list[np.ndarray]) -> int:
    return int(np.argmin([((np.array(point) - centroid) ** 2).sum() for centroid in centroids]))


class RunawayError(Exception):
    """Fewer clusters are left than a task has classes."""


def algorithm_2(
    tasks: list[Task],
    *,
    n_clusters: int,
    q: float,
    min_count: int,
    cumulative_weights: bool,
    max_passes: int,
    seed: int,
) -> Found:
    generator = np.random.default_rng(seed)
    centroids: list[np.ndarray] = []
    for t in generator.permutation(len(tasks)):
        for mean, _ in tasks[t]:
            if len(centroids) < n_clusters:
                centroids.append(np.array(mean))
    order = generator.permutation(len(tasks))

    samples, path = [1] * n_clusters, []
    for _ in range(max_passes):
        clusters = len(centroids)
        matches, variance = [0] * clusters, 0.0
        if not cumulative_weights:
            samples = [1] * clusters
        tasks_matched = 0
        for t in order:
            matched = [nearest(mean, centroids) for mean, _ in tasks[t]]
            if len(set(matched)) < len(tasks[t]):
                continue
            for v, (mean, size) in zip(matched, tasks[t], strict=True):
                centroids[v] = (samples[v] * centroids[v] + size * np.array(mean)) / (samples[v] + size)
                samples[v] += size
                matches[v] += 1
            tasks_matched += 1
            p = len(tasks[t]) / clusters
            variance += p * (1 - p)
        threshold = sum(matches) / clusters - q * math.sqrt(variance)
        kept = [v for v in range(clusters) if matches[v] >= threshold and matches[v] >= min_count]
        path.append((clusters, threshold, len(kept), tasks_matched / len(tasks)))
        centroids, samples, matches = [[of[v] for v in kept] for of in (centroids, samples, matches)]
        if len(kept) < max(len(task) for task in tasks):
            raise RunawayError
        if len(kept) == clusters:
            break

    assignments, clustered = [], []
    for task in tasks:
        found = [nearest(mean, centroids) for mean, _ in task]
        assignments += found
        clustered += [len(set(found)) == len(task)] * len(task)
    return Found(np.array(centroids), np.array(matches), np.array(assignments), np.array(clustered), path)


def random_tasks(seed: int, *, n_tasks: int, n_classes: int, noise: float, ways: tuple[int, ...]) -> list[Task]:
    """Tasks of mixed ways and sizes whose class means scatter about the true classes' centres."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(n_classes, 6))
    return [
        [
            ((centres[true] + generator.normal(scale=noise, size=6)).tolist(), int(generator.integers(1, 21)))
            for true in generator.choice(n_classes, size=generator.choice(ways), replace=False)
        ]
        for _ in range(n_tasks)
    ]


def seed_for(n_tasks: int, *, first: list[int], order: list[int] | None = None) -> int:
    """A seed for which centroids start at the tasks `first` and passes visit the tasks in `order`, if it is given."""
    for seed in range(10_000):
        generator = np.random.default_rng(seed)
        starts, visits = generator.permutation(n_tasks)[: len(first)].tolist(), generator.permutation(n_tasks).tolist()
        if starts == first and order in (None, visits):
            return seed
    raise AssertionError("no such seed")


SETTINGS: dict[str, Any] = {"min_count": 1, "cumulative_weights": False, "max_passes": 100}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cumulative_weights", [False, True], ids=["reset", "cumulative"])
@pytest.mark.parametrize(
    ("ways", "values"),
    [
        ((5,), {"n_clusters": 23, "q": 2.5}),
        ((2, 3, 5), {"n_clusters": 24, "q": 2.0}),
        ((2, 3, 5), {"n_clusters": 24, "q": 6.0, "min_count": 4}),
        ((3, 4), {"n_clusters": 30, "q": 1.5, "max_passes": 2}),
    ],
)
def test_equals_algorithm_2_as_plain_loops(
    ways: tuple[int, ...], values: dict[str, Any], cumulative_weights: bool, seed: int
) -> None:
    tasks = random_tasks(seed, n_tasks=70, n_classes=12, noise=0.6, ways=ways)
    values = SETTINGS | values | {"cumulative_weights": cumulative_weights, "seed": seed}
    try:
        expected = algorithm_2(tasks, **values)
    except RunawayError:
        with pytest.raises(MelaError, match="would leave"):
            learn_labels(as_classes(tasks), **values)
        return
    found = learn_labels(as_classes(tasks), **values)

    assert expected.path[0][2] < values["n_clusters"], "the case should prune"
    assert any(share < 1 for *_, share in expected.path), "the case should have collisions"
    for name in ("assignments", "clustered", "counts"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    np.testing.assert_allclose(found.centroids, expected.centroids, rtol=0, atol=1e-9)
    steps = [(step.clusters, step.threshold, step.kept, step.tasks_clustered) for step in found.path]
    assert [(a, c) for a, _, c, _ in steps] == [(a, c) for a, _, c, _ in expected.path]
    np.testing.assert_allclose(steps, expected.path, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("tasks", "order", "matched", "counts", "centroids", "assignments"),
    [
        # centroids move within the pass: frozen at 0 and 10 the last task would collide, since 5.5 is nearer to 10
        ([(0, 10), (4, 14), (5.5, 30)], [0, 1, 2], 1, 3, [(0 + 0 + 4 + 5.5) / 4, (10 + 10 + 14 + 30) / 4], [0, 1] * 3),
        # before they moved it collides, which only the final assignment mends
        ([(0, 10), (4, 14), (5.5, 30)], [0, 2, 1], 2 / 3, 2, [4 / 3, 34 / 3], [0, 1] * 3),
        ([(0, 10), (1, 2), (0, 10)], [1, 0, 2], 2 / 3, 2, [0, 10], [0, 1, 0, 0, 0, 1]),
    ],
    ids=["moving", "the order of the visits", "colliding tasks are skipped"],
)
def test_a_pass_by_hand(
    tasks: Any, order: list[int], matched: float, counts: int, centroids: list[float], assignments: list[int]
) -> None:
    found = learn_labels(on_a_line(*tasks), n_clusters=2, q=5, seed=seed_for(3, first=[0], order=order))
    assert found.path[0].tasks_clustered == pytest.approx(matched)
    assert found.counts.tolist() == [counts, counts]
    np.testing.assert_allclose(found.centroids[:, 0], centroids)
    assert found.assignments.tolist() == assignments
    assert found.clustered[::2].tolist() == np.diff(np.reshape(assignments, (3, 2))).astype(bool)[:, 0].tolist()


# Clusters 0, 100 and 200 take part in 4, 3 and 1 of 4 tasks: mean 8/3, p = 2/3, variance 4 * 2/3 * 1/3 = 8/9.
PRUNED = on_a_line((0, 100), (200, 0), (0, 100), (0, 100), size=20)
PRUNED_SEED = seed_for(4, first=[0, 1])


@pytest.mark.parametrize(
    ("q", "min_count", "thresholds", "kept"),
    [
        (2.0, 1, [8 / 3 - 2 * math.sqrt(8 / 9)], [3]),
        (2.0, 2, [8 / 3 - 2 * math.sqrt(8 / 9), 4], [2, 2]),
        (2.0, 3, [8 / 3 - 2 * math.sqrt(8 / 9), 4], [2, 2]),
        (1.0, 1, [8 / 3 - math.sqrt(8 / 9), 4], [2, 2]),
        (100.0, 1, [8 / 3 - 100 * math.sqrt(8 / 9)], [3]),
    ],
)
def test_threshold_by_hand(q: float, min_count: int, thresholds: list[float], kept: list[int]) -> None:
    found = learn_labels(PRUNED, n_clusters=3, q=q, min_count=min_count, seed=PRUNED_SEED)
    np.testing.assert_allclose([step.threshold for step in found.path], thresholds, rtol=1e-12)
    assert [step.kept for step in found.path] == kept
    assert [step.clusters for step in found.path] == [3, *kept[:-1]]
    assert len(found.centroids) == kept[-1]


def test_cumulative_weights_by_hand() -> None:
    """Counts start from 0 in the second pass. Weights go on, so that its centroids are means over both passes.

    Clusters 0, 100 and 200 take part in 4, 3 and 1 tasks. The third is removed, and the others take part in all.
    """
    moved = on_a_line((0, 100), (200, 4), (8, 100), (4, 112), size=20)
    settings = {"n_clusters": 3, "q": 1, "seed": PRUNED_SEED}
    reset = learn_labels(moved, **settings)
    found = learn_labels(moved, **settings, cumulative_weights=True)
    for one in (reset, found):
        assert one.counts.tolist() == [4, 4]
        assert [step.clusters for step in one.path] == [3, 2]
        np.testing.assert_allclose([step.threshold for step in one.path], [8 / 3 - math.sqrt(8 / 9), 4])
    low, high = 20 * (0 + 4 + 8 + 4), 20 * (100 + 100 + 112)
    first = low / 81, (100 + high) / 61
    again = low, high + 20 * 200
    np.testing.assert_allclose(
        np.sort(found.centroids[:, 0]), [(81 * first[0] + again[0]) / 161, (61 * first[1] + again[1]) / 141]
    )
    np.testing.assert_allclose(np.sort(reset.centroids[:, 0]), [(first[0] + again[0]) / 81, (first[1] + again[1]) / 81])


def test_cumulative_weights_do_not_run_away() -> None:
    """64 classes that spread over clusters; counts that went on as well would end in an error below 5 clusters."""
    generator = np.random.default_rng(0)
    centres = 0.55 * generator.normal(size=(64, 32))
    true = np.concatenate([generator.choice(64, size=5, replace=False) for _ in range(3000)])
    classes = ClassMeans(
        task_ids=np.arange(3000).repeat(5),
        starts=np.arange(0, 15_001, 5),
        means=centres[true] + 0.35 * generator.normal(size=(15_000, 32)),
        sizes=np.ones(15_000, dtype=np.int64),
    )
    found = learn_labels(classes, n_clusters=300, q=4.5, cumulative_weights=True, seed=0)
    assert 50 < len(found.centroids) <= 64


def separated_tasks(seed: int) -> tuple[ClassMeans, np.ndarray]:
    generator = np.random.default_rng(seed)
    centres = 10 * generator.normal(size=(20, 16))
    true = np.array([generator.choice(20, size=5, replace=False) for _ in range(400)])
    means = centres[true] + 0.3 * generator.normal(size=(400, 5, 16))
    return as_classes([[(mean.tolist(), 20) for mean in task] for task in means]), true.reshape(-1)


@pytest.mark.parametrize("seed", range(3))
def test_well_separated_classes_are_recovered_purely(seed: int) -> None:
    classes, true = separated_tasks(seed)
    found = learn_labels(classes, n_clusters=100, q=20, min_count=8, seed=seed)
    pairs = {(int(cluster), int(label)) for cluster, label in zip(found.assignments, true, strict=True)}
    assert len(pairs) == len({cluster for cluster, _ in pairs}), "a cluster holds two true classes"
    assert {label for _, label in pairs} == set(range(20))
    assert found.clustered.all()
    assert len(found.centroids) < 50


def test_pruning_that_would_remove_every_cluster() -> None:
    message = (
        r"^labeler\.q: pass 1 would leave 0 of 3 clusters, fewer than the 2 ways of task 0 \(4 of 4 tasks clustered\); "
        r"raise labeler\.q, lower labeler\.min_count, or turn labeler\.guard on$"
    )
    with pytest.raises(MelaError, match=message):
        learn_labels(PRUNED, n_clusters=3, q=2, min_count=5, seed=PRUNED_SEED)


def test_pruning_below_the_ways_of_the_widest_task() -> None:
    """Clusters 0, 10 and 20 are matched by 5, 3 and 3 tasks, so that q = 0 leaves the first alone."""
    classes = on_a_line((0, 10), (0, 10, 20), (0, 20), (0, 10), (0, 20))
    seed = seed_for(5, first=[1], order=[0, 1, 2, 3, 4])
    with pytest.raises(MelaError, match=r"would leave 1 of 3 clusters, fewer than the 3 ways of task 1 \(5 of 5 tasks"):
        learn_labels(classes, n_clusters=3, q=0, seed=seed)
    guarded = prune_clusters(classes, n_clusters=3, q=0, seed=seed)
    assert guarded.centroids.tolist() == [[0], [10], [20]]
    assert guarded.counts.tolist() == [5, 3, 3]
    assert [step.kept for step in guarded.path] == [1]


def overlapping_tasks(seed: int) -> ClassMeans:
    return as_classes(random_tasks(seed, n_tasks=150, n_classes=15, noise=0.4, ways=(4,)))


def test_the_guard_goes_back_to_where_pruning_ran_away() -> None:
    """Of these runs some stop with most classes in one cluster with another; the guard returns what came before."""
    changed = 0
    for seed in range(10):
        classes = overlapping_tasks(seed)
        pruned = prune_clusters(classes, n_clusters=40, q=1.0, seed=seed)
        best = max(pruned.path, key=lambda step: step.match)
        chosen = pruned.path[pruned.chosen]
        assert chosen.match >= best.match - 2 * best.match_error
        assert all(step.match < best.match - 2 * best.match_error for step in pruned.path[pruned.chosen + 1 :])
        assert len(pruned.centroids) == len(pruned.counts)
        if pruned.chosen < len(pruned.path) - 1:
            changed += 1
            assert len(pruned.centroids) == chosen.clusters > pruned.path[-1].clusters
    assert changed >= 3


def test_the_guarded_clusters_are_those_of_the_chosen_pass() -> None:
    classes = overlapping_tasks(0)
    pruned = prune_clusters(classes, n_clusters=40, q=1.0, seed=0)
    assert pruned.guarded
    again = prune_clusters(classes, n_clusters=40, q=1.0, max_passes=pruned.chosen + 1, seed=0)
    assert again.path == pruned.path[: pruned.chosen + 1]
    # the shorter run ends with its last pass, pruned; the guard keeps the clusters that the pass was judged with
    kept = np.isin(pruned.counts, again.counts)
    assert set(map(tuple, again.centroids.tolist())) <= set(map(tuple, pruned.centroids[kept].tolist()))
    assert len(again.centroids) == pruned.path[pruned.chosen].kept


@pytest.mark.parametrize("seed", range(3))
def test_the_guard_leaves_alone_what_did_not_run_away(seed: int) -> None:
    classes, _ = separated_tasks(seed)
    guarded = prune_clusters(classes, n_clusters=100, q=20, min_count=8, seed=seed)
    plain = prune_clusters(classes, n_clusters=100, q=20, min_count=8, seed=seed, guard=False)
    assert guarded.settled
    assert not guarded.guarded
    np.testing.assert_array_equal(guarded.centroids, plain.centroids)
    np.testing.assert_array_equal(guarded.counts, plain.counts)


@given(seed=st.integers(0, 1000), q=st.floats(0, 2), n_clusters=st.integers(5, 40), cumulative=st.booleans())
@settings(deadline=None, max_examples=60)
def test_never_fewer_clusters_than_the_largest_way(seed: int, q: float, n_clusters: int, cumulative: bool) -> None:
    classes = as_classes(random_tasks(seed, n_tasks=20, n_classes=8, noise=1.0, ways=(2, 4, 5)))
    pruned = prune_clusters(classes, n_clusters=n_clusters, q=q, cumulative_weights=cumulative, seed=seed)
    assert len(pruned.centroids) >= classes.ways.max()
    assert all(step.clusters >= classes.ways.max() for step in pruned.path)
    assert np.isfinite(pruned.centroids).all()
