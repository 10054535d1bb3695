"""Let tasks judge merging that had no part in it.

Merging keeps the classes of a task apart, so pairs inside tasks cannot judge its clusters. Without the constraint each
task class would go to its nearest cluster (`mela.labeling.merging.left_out`). But where samples are few, clusters have
grown around the noise of their task classes, and are the nearest ones for no other reason. So half of the tasks are
merged, and each class of the other half goes to its nearest cluster, in turns. Clusters of fewer tasks are a little
worse, so that this judge is rather too strict.
"""

import numpy as np

from mela.data.array_types import Ints
from mela.labeling.centroids import nearest
from mela.labeling.clusters import weighted_sums
from mela.labeling.cuts import halves
from mela.labeling.merging import merge_classes
from mela.labeling.pair_quality import collisions, joined_share
from mela.labeling.task_classes import ClassMeans, TaskSamples, class_means


def held_out_error(samples: TaskSamples, classes: ClassMeans, *, seed: int = 0) -> float | None:
    """Return a / b of merging, as tasks judge it that had no part in it.

    a is the share of pairs inside tasks that share a cluster, and b that of all pairs of the same task classes.

    Parameters
    ----------
    samples : TaskSamples
    classes : ClassMeans
        Task classes of these samples.
    seed : int
        As `mela.labeling.merging.merge_classes` takes it.

    Returns
    -------
    float or None
        None where a half has no pairs inside tasks or no task class of two samples, or joins nothing.
    """
    known = classes.ways * (classes.ways - 1) // 2
    sources = np.arange(len(known)) if classes.sources is None else classes.sources
    # these are two, a half and the other one
    divided = [half for half, _ in zip(halves(known, sources), range(2), strict=False)]
    parts = [samples.some(half) for half in divided]
    if not parts or any((part.sizes < 2).all() for part in parts):
        return None
    inside, shared = 0, []
    for part, other in zip(parts, reversed(parts), strict=True):
        placed = _placed(part, class_means(other), seed)
        inside += collisions(placed, other.starts)
        shared.append(joined_share(placed))
    return inside / float(known.sum()) / float(np.mean(shared)) if any(shared) else None


def _placed(samples: TaskSamples, others: ClassMeans, seed: int) -> Ints:
    """Return the nearest of the clusters of some tasks, for the classes of others."""
    classes = class_means(samples)
    merged = merge_classes(samples, classes, seed=seed)
    weights, sums = weighted_sums(merged.assignments, classes.means, classes.sizes)
    centers = sums / weights[:, None]
    return nearest(merged.space.transform(others.means), merged.space.transform(centers))
