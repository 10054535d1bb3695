"""Measure how long merging takes for up to a million task classes, its memory, and how many classes it finds.

``python -m studies speed.many_classes`` writes the rows ``many_classes`` of bench.json. Features are normal with 64
dimensions. Class centers lie half a unit of a sample's noise from the mean in each direction, classes differ in shape,
and tasks have 5 classes of 5 samples. Each size runs in a process of its own.
"""

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.metrics import adjusted_rand_score

from mela.data.array_types import Ints
from mela.labeling import MergeLabeler, TaskSamples, group_samples
from studies.speed.measure import Usage, record, uniform_tasks, write_rows

WAYS, SAMPLES, DIMENSIONS, DISTANCE, SHAPES = 5, 5, 64, 0.5, 1 / 3
# task classes, and the classes that they are of
SIZES = {4000: 200, 20_000: 1000, 100_000: 5000, 1_000_000: 10_000}
BLOCK = 20_000


def drawn(n: int, n_classes: int, seed: int = 0) -> tuple[TaskSamples, Ints]:
    """Return samples of n task classes, and the class of each task class (n,)."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, DIMENSIONS)) * DISTANCE
    shapes = np.exp(rng.normal(size=(n_classes, DIMENSIONS)) * SHAPES)
    truth = uniform_tasks(rng, n // WAYS, WAYS, n_classes)
    features = np.empty((n * SAMPLES, DIMENSIONS), dtype=np.float32)
    for start in range(0, n, BLOCK):
        own = np.repeat(truth[start : start + BLOCK], SAMPLES)
        noise = rng.normal(size=(len(own), DIMENSIONS)) * shapes[own]
        features[start * SAMPLES : start * SAMPLES + len(own)] = centers[own] + noise
    rows = np.arange(n * SAMPLES) // SAMPLES
    return group_samples(features, np.arange(len(rows)), rows // WAYS, rows), truth


def measured(n: int, n_classes: int) -> dict[str, Any]:
    """Merge n task classes in this process."""
    samples, truth = drawn(n, n_classes)
    labeler = MergeLabeler()
    usage = Usage.of(lambda: labeler.fit_tasks(samples))
    return {
        "seconds": usage.seconds,
        "cpu_seconds": round(usage.cpu_seconds, 1),
        "own_peak_mb": round(usage.own_peak / 1e6),
        "features_mb": round(samples.features.nbytes / 1e6),
        "classes": len(np.unique(truth)),
        "clusters": len(labeler.counts_),
        "ari": round(float(adjusted_rand_score(truth, labeler.class_labels_)), 4),
    }


def main(sizes: Annotated[list[int], typer.Option(help="task classes")] = list(SIZES)) -> None:  # noqa: B006
    """Measure some sizes and add them to studies/results/bench.json."""
    for n in sizes:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            found = pool.submit(measured, n, SIZES[n]).result()
        threads = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
        seconds = found.pop("seconds")
        write_rows([record("many_classes", seconds, seconds, unit="s", n=1, data=str(n), threads=threads, **found)])
