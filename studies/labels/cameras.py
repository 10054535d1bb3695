"""Find classes behind simulated cameras, each of which changes each feature by a factor of its own."""

from typing import Any

import numpy as np

from mela.data.array_types import Ints
from mela.labeling.task_classes import TaskSamples, group_samples
from studies.labels import rivals

CLASSES, TASKS, WAYS, SAMPLES, FEATURES = 30, 120, 5, 8, 24
NOISE = 0.3


def measure(*, gain: float, objects: float, seed: int) -> list[dict[str, Any]]:
    """Return a row for each rival in each space, and one for merging, as `studies.labels.rivals.rows`.

    Parameters
    ----------
    gain : float
        Standard deviation of the logarithm of a camera's factors.
    objects : float
        Standard deviation of objects about their class, in units of that of classes.
    seed : int
        Of the simulation.
    """
    return rivals.rows(*simulated(gain, objects, seed))


def simulated(gain: float, objects: float, seed: int) -> tuple[TaskSamples, Ints]:
    """Return samples, and the true class (n,) of each task class."""
    rng = np.random.default_rng(seed)
    centers = np.abs(rng.normal(size=(CLASSES, FEATURES)))
    truth = np.concatenate([rng.permutation(CLASSES)[:WAYS] for _ in range(TASKS)])
    cameras = np.exp(gain * rng.normal(size=(TASKS, FEATURES))).repeat(WAYS, axis=0)
    photographed = (centers[truth] + objects * rng.normal(size=(len(truth), FEATURES))) * cameras
    features = photographed.repeat(SAMPLES, axis=0) + NOISE * rng.normal(size=(len(truth) * SAMPLES, FEATURES))
    labels, tasks = np.tile(np.arange(WAYS), TASKS).repeat(SAMPLES), np.arange(TASKS).repeat(WAYS * SAMPLES)
    return group_samples(features, np.arange(len(features)), tasks, labels), truth
