"""Compare one pass of LearnLabeler with its matrix product and the plain loop, and measure its growth with tasks."""

from typing import Any

import numpy as np

from mela.data.array_types import AnyArray
from mela.labeling.centroids import Centroids, norms
from mela.labeling.pruning import run_pass
from mela.labeling.task_classes import class_means, group_samples
from studies.speed.measure import Usage, alternate, record, uniform_tasks, write_rows

TASKS, WAYS, CLUSTERS, DIMENSIONS, SAMPLES, REPEATS = 4000, 5, 3000, 640, 20, 5
BLOCK = 256


def class_points(n_tasks: int, dtype: Any) -> AnyArray:
    """Return class means that look like features: not negative, half of them zero."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(CLUSTERS, DIMENSIONS))
    noise = rng.normal(size=(n_tasks * WAYS, DIMENSIONS)) / 2
    return np.maximum(centers[uniform_tasks(rng, n_tasks, WAYS, CLUSTERS)] + noise, 0).astype(dtype)


def product(points: AnyArray, centroids: AnyArray) -> None:
    """Compute the matrix product alone."""
    for start in range(0, len(points), BLOCK):
        points[start : start + BLOCK] @ centroids.T


def blocked(points: AnyArray, centroids: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Run one pass of ours; return assignments and centroids."""
    n_tasks = len(points) // WAYS
    moving = Centroids(centroids, float(norms(points).max()))
    weights, counts = np.ones(len(centroids)), np.zeros(len(centroids), dtype=np.int64)
    starts, sizes = np.arange(n_tasks + 1) * WAYS, np.full(len(points), SAMPLES)
    _, assignments = run_pass(points, sizes, starts, np.arange(n_tasks), moving, weights, counts)
    return assignments, moving.points


def loop(points: AnyArray, centroids: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Run one pass as Algorithm 2 is written: one product per task."""
    centroids, weights = centroids.copy(), np.ones(len(centroids), dtype=points.dtype)
    assignments = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(points), WAYS):
        own = points[start : start + WAYS]
        found = ((centroids * centroids).sum(axis=1) / 2 - own @ centroids.T).argmin(axis=1)
        assignments[start : start + WAYS] = found
        if len(set(found.tolist())) == WAYS:
            old = weights[found][:, None]
            centroids[found] = (old * centroids[found] + SAMPLES * own) / (old + SAMPLES)
            weights[found] += SAMPLES
    return assignments, centroids


def passes(dtype: Any) -> list[dict[str, Any]]:
    """Time ours, the product and the loop in turn, and compare the results of ours and the loop."""
    points = class_points(TASKS, dtype)
    first = points[:CLUSTERS].copy()
    ours, bare, plain = alternate(
        lambda: blocked(points, first), lambda: product(points, first), lambda: loop(points, first), n=REPEATS
    )
    (assignments, centroids), (wanted, moved) = blocked(points, first), loop(points, first)
    name = np.dtype(dtype).name
    same = {
        "assignments_equal": bool((assignments == wanted).all()),
        "largest_difference_of_centroids": float(np.abs(centroids - moved).max()),
    }
    size = {"tasks": TASKS, "ways": WAYS, "clusters": CLUSTERS, "dimensions": DIMENSIONS, "dtype": name}
    return [
        record("labeler_vs_product", ours, bare, unit="s", n=REPEATS, **size),
        record("labeler_vs_loop", ours, plain, unit="s", n=REPEATS, **size, **same),
    ]


def growth() -> list[dict[str, Any]]:
    """Measure five times the tasks, each sample drawn from 36,000 images: time of a pass, memory with class means."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(36_000, DIMENSIONS)).astype(np.float32)

    def whole(n_tasks: int) -> None:
        n = n_tasks * WAYS * SAMPLES
        labels = np.tile(np.arange(WAYS).repeat(SAMPLES), n_tasks)
        tasks = np.arange(n_tasks).repeat(WAYS * SAMPLES)
        means = class_means(group_samples(features, rng.integers(0, 36_000, size=n), tasks, labels)).means
        blocked(means, means[:CLUSTERS].copy())

    memory = Usage.of(lambda: whole(20_000)).peak
    points, many = class_points(4000, np.float64), class_points(20_000, np.float64)
    first = points[:CLUSTERS].copy()
    large, small = alternate(lambda: blocked(many, first), lambda: blocked(points, first), n=3)
    return [
        record("labeler_20000_vs_4000_tasks", large, small, unit="s", n=3, clusters=CLUSTERS, dtype="float64"),
        record("labeler_memory_20000_tasks_vs_limit", memory / 1e9, 1.0, unit="GB", n=1, clusters=CLUSTERS),
    ]


def main() -> None:
    """Write studies/results/bench.json."""
    rows = [*growth(), *passes(np.float64), *passes(np.float32)]
    write_rows(rows)
