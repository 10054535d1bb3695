"""Let tasks judge merging that had no part in it.

Merging keeps the classes of a task apart, so pairs inside tasks cannot judge its clusters. Without the constraint each
task class would go to its nearest cluster (`mela.labeling.merging.left_out`). But where samples are few, clusters have
grown around the noise of their task classes, and are the nearest ones for no other reason. So half of the tasks are
merged, and each class of the other half goes to its nearest cluster, in turns. Clusters of half of the tasks are worse
than those of all, so that this judge is rather too strict. Where clusters have few task classes it would be far too
strict.
"""

import numpy as np
import numpy.typing as npt

from mela.data.array_types import Ints
from mela.errors import MelaError
from mela.labeling.centroids import nearest
from mela.labeling.clusters import weighted_sums
from mela.labeling.cuts import halves
from mela.labeling.merging import merge_classes
from mela.labeling.pair_quality import collisions, joined_share, pairs_inside
from mela.labeling.task_classes import ClassMeans, TaskSamples, class_means

# of an average cluster, so that half of them still show where it is
TASK_CLASSES = 8
# of the pairs inside tasks, which the smaller half has at least
SHARE = 0.25


def held_out_error(samples: TaskSamples, classes: ClassMeans, n_clusters: int, *, seed: int = 0) -> float | None:
    """Return a / b of merging, as tasks judge it that had no part in it.

    a is the share of pairs inside tasks that share a cluster, and b that of pairs of different tasks.

    Parameters
    ----------
    samples : TaskSamples
    classes : ClassMeans
        Task classes of these samples.
    n_clusters : int
        What merging all of them has found.
    seed : int
        As `mela.labeling.merging.merge_classes` takes it.

    Returns
    -------
    float or None
        None where clusters have fewer than eight task classes on average, the tasks cannot be divided into even halves
        because of their sources, a half cannot be merged, or nothing is joined.
    """
    pairs = pairs_inside(classes.starts)
    even = max(halves(pairs, classes.sources), key=lambda half: _smaller(pairs, half), default=None)
    if len(classes.sizes) < TASK_CLASSES * n_clusters or even is None or _smaller(pairs, even) < SHARE * pairs.sum():
        return None
    parts = [samples.some(half) for half in (even, ~even)]
    means = [class_means(part) for part in parts]
    wrong, expected = 0, 0.0
    for part, own, others in zip(parts, means, reversed(means), strict=True):
        try:
            placed = _placed(part, own, others, seed)
        except MelaError:
            # all may be merged where too little is known of half of them
            return None
        every, inside = len(placed) * (len(placed) - 1) // 2, int(pairs_inside(others.starts).sum())
        together = collisions(placed, others.starts)
        wrong += together
        expected += inside * (joined_share(placed) * every - together) / max(every - inside, 1)
    return wrong / expected if expected else None


def _smaller(pairs: Ints, half: npt.NDArray[np.bool_]) -> int:
    """Return how many of the pairs inside tasks (n_tasks,) the smaller half has."""
    return int(min(pairs[half].sum(), pairs[~half].sum()))


def _placed(samples: TaskSamples, classes: ClassMeans, others: ClassMeans, seed: int) -> Ints:
    """Return the nearest of the clusters of some tasks, for the classes of others."""
    merged = merge_classes(samples, classes, seed=seed)
    weights, sums = weighted_sums(merged.assignments, classes.means, classes.sizes)
    centers = sums / weights[:, None]
    return nearest(merged.space.transform(others.means), merged.space.transform(centers))
