"""Compare labels of tasks that come in parts, by ``partial_fit``, with those of a fit to all tasks at once."""

from itertools import pairwise
from typing import Any

import numpy as np

from mela.data.array_types import Floats, Ints
from mela.labeling.merge_labeler import MergeLabeler
from studies.labels.expected import scored

CLASSES, TASKS, WAYS, SAMPLES, FEATURES = 60, 400, 5, 5, 24
# parts after the first half of the tasks
PARTS = 5


def measure(*, distance: float, people: float, late: float, seed: int) -> dict[str, Any]:
    """Return numbers of clusters and Rand indices of both.

    Parameters
    ----------
    distance : float
        Standard deviation of class centers in each direction, in units of that of the samples.
    people : float
        The same of task classes about their class.
    late : float
        Share of the classes that are in the second half of the tasks only.
    seed : int
        Of the simulation.
    """
    features, truth = simulated(distance, people, late, seed)
    rows = np.arange(len(features))
    tasks = rows // (WAYS * SAMPLES)

    def given(first: int, last: int) -> tuple[Floats, Ints, Ints]:
        own = rows[(tasks >= first) & (tasks < last)]
        return features[own], own // SAMPLES % WAYS, tasks[own]

    whole, labeler, found = MergeLabeler(), MergeLabeler(), []
    whole.fit(*given(0, TASKS))
    labeler.fit(*given(0, TASKS // 2))
    found.append(labeler.learned_labels)
    bounds = np.linspace(TASKS // 2, TASKS, PARTS + 1).astype(int)
    for first, last in pairwise(bounds.tolist()):
        found.append(labeler.partial_fit(*given(first, last)).class_labels_)
    one, other = scored(truth, whole.learned_labels), scored(truth, np.concatenate(found))
    return {
        "true_classes": len(np.unique(truth)),
        "fit_clusters": one["clusters"],
        "clusters": other["clusters"],
        "fit_ari": one["ari"],
        "ari": other["ari"],
    }


def simulated(distance: float, people: float, late: float, seed: int) -> tuple[Floats, Ints]:
    """Return samples, sorted by task and label, and the true class (n,) of each task class."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(CLASSES, FEATURES)) * distance
    first = int(late * CLASSES)
    truth = np.concatenate(
        [
            rng.choice(np.arange(first if task < TASKS // 2 else 0, CLASSES), WAYS, replace=False)
            for task in range(TASKS)
        ]
    )
    means = centers[truth] + people * rng.normal(size=(len(truth), FEATURES))
    return means.repeat(SAMPLES, axis=0) + rng.normal(size=(len(truth) * SAMPLES, FEATURES)), truth
