r"""Task classes that lie apart although they are one class, because the people who made them differ.

The mean of a task class is that of its class, plus an effect of whoever made the task, plus noise of its samples. One
person's samples are alike, so their noise does not show how large the effects are. Merging then finds a
separate class for each person's version of a class, since its model has noise alone. This module finds clusters
without such a model:

1. Measure how far apart task classes are by the neighbours that they share (`mela.labeling.neighbours`). Neighbours are
   found three times: by the angle between features; in units of the noise inside task classes; and by the angle in
   these units.
2. Build a tree by average linkage, without regard to which task classes met in tasks.
3. Cut it where `match` is largest (`mela.labeling.pair_quality`). Pairs inside tasks are known to be different classes;
   since the tree does not use them, they test each cut independently. Of the three trees, take the one whose cut has
   the largest `match`.
4. Task classes of one task that share a cluster cannot all be right. The one closest to the center stays, and each of
   the others becomes a cluster of its own.

Where people shift all classes of a task alike, the mean of each task is taken away first. That alone drives the classes
of a task apart, so that pairs inside tasks are no independent judge any more. How large a `match` it makes is measured
on tasks that are dealt at random from all task classes, and this is subtracted.

The covariance of task classes about the centers of their clusters,

.. math:: S = \frac{D^\top D + m N}{n - k + m},

is that of effects and noise together. D (n, m) are the deviations from the centers of k clusters, and N is the
covariance of the noise, which counts as much as m task classes. New task classes are assigned by distances in units of
S: directions in which people differ count less.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import weighted_sums
from mela.labeling.neighbours import shared_neighbours
from mela.labeling.pair_quality import PairQuality, cut_matches, pair_quality
from mela.labeling.space import Space, noise_of, space_of
from mela.labeling.task_classes import ClassMeans, TaskSamples


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Hold the partition that `find_effects` arrives at.

    Attributes
    ----------
    space : Space
        Coordinates in which noise and effects together have unit covariance.
    means : float64 (n, m)
        Task classes, without the shifts of their tasks where there are such.
    assignments : int64 (n,)
        Cluster of each task class, from 0, no two of a task alike; -1 where the fragment of another class of its task
        was the same.
    cut : int64 (n,)
        The same before classes of one task were told apart.
    quality : PairQuality
        Of the cut.
    covariance : float64 (m, m)
        S, of a task class about its class.
    shifted : bool
        Whether shifts of tasks were taken away.
    """

    space: Space
    means: Floats
    assignments: Ints
    cut: Ints
    quality: PairQuality
    covariance: Floats
    shifted: bool


def find_effects(samples: TaskSamples, classes: ClassMeans, fragments: Ints, other: PairQuality) -> Effects | None:
    """Find clusters of task classes, and how much task classes of one cluster differ.

    Parameters
    ----------
    samples : TaskSamples
        Some task class has two samples or more.
    classes : ClassMeans
        Of these samples.
    fragments : int64 (n,)
        Task classes that share a number stay together, which keeps the tree small; -1 is left out. With
        ``numpy.arange(n)`` every task class is a leaf of the tree.
    other : PairQuality
        Of a partition that knows no effects.

    Returns
    -------
    Effects or None
        None where these clusters are not surely better than the other partition, or fewer than a task has ways.
    """
    noise, freedom = noise_of(samples, classes)
    clusters, quality = _partition(classes.means, (noise, freedom), fragments, classes.starts)
    surely = quality.beats(other)
    if not surely and other.match > 2 * other.match_error:
        return None
    without, less = _without_shifts(classes, (noise, freedom), fragments)
    shifted = less.match - 2 * less.match_error > quality.match
    if shifted:
        clusters, quality, surely = without, less, less.beats(other)
    if clusters.max() + 1 < classes.ways.max() or not surely:
        return None
    means = classes.means
    if shifted:
        centered = means - _task_means(means, classes.starts)
        means = means - _shifts(means - _centers(centered, clusters), clusters >= 0, classes.starts)
    deviations = means - _centers(means, clusters)
    used = clusters >= 0
    rest = deviations[used]
    freedom = len(rest) - int(clusters.max()) - 1 + len(noise)
    covariance = (rest.T @ rest + len(noise) * noise) / freedom
    space = space_of(means, covariance, freedom)
    return Effects(
        space=space,
        means=means,
        assignments=_apart(clusters, (deviations @ space.components) ** 2, classes.starts),
        cut=clusters,
        quality=quality,
        covariance=covariance,
        shifted=shifted,
    )


def _without_shifts(classes: ClassMeans, noise: tuple[Floats, int], fragments: Ints) -> tuple[Ints, PairQuality]:
    """Return clusters (n,) of task classes less the means of their tasks; their quality is that beyond chance."""
    starts, dealt = classes.starts, np.random.default_rng(0).permutation(len(classes.means))

    def found(means: Floats, fragments: Ints) -> tuple[Ints, PairQuality]:
        return _partition(means - _task_means(means, starts), noise, fragments, starts)

    clusters, quality = found(classes.means, fragments)
    _, chance = found(classes.means[dealt], fragments[dealt])
    return clusters, replace(quality, match=quality.match - chance.match)


def _partition(means: Floats, noise: tuple[Floats, int], fragments: Ints, starts: Ints) -> tuple[Ints, PairQuality]:
    """Return the clusters (n,) whose `match` is the largest of three trees, and their quality; -1 as in fragments."""
    centered = means - means.mean(axis=0)
    scaled = space_of(means, *noise).transform(means)
    found = (_cut(points, fragments, starts) for points in (_unit(centered), scaled, _unit(scaled)))
    judged = [(clusters, pair_quality(clusters, starts)) for clusters in found]
    return max(judged, key=lambda pair: pair[1].match)


def _unit(points: Floats) -> Floats:
    """Return points (n, d) of length 1."""
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), np.finfo(np.float64).tiny)


def _cut(points: Floats, fragments: Ints, starts: Ints) -> Ints:
    """Return the clusters (n,) of that cut of the tree whose `match` is largest; -1 as among the fragments."""
    sizes, sums = weighted_sums(fragments, points, np.ones(len(points)))
    tree = linkage(shared_neighbours(sums / sizes[:, None]), "average")
    kept = int(cut_matches(tree, fragments, starts).argmax())
    # the height of a step is then its number
    tree[:, 2] = np.arange(1, len(tree) + 1)
    clusters = fcluster(tree, kept + 0.5, "distance").astype(np.int64) - 1
    return np.where(fragments >= 0, clusters[fragments], -1)


def _apart(clusters: Ints, squared: Floats, starts: Ints) -> Ints:
    """Return clusters (n,) no two of a task alike: the class nearest to its center stays, others are on their own.

    Parameters
    ----------
    clusters : int64 (n,)
    squared : float64 (n, d)
        Squared deviations from the centers, by coordinates.
    starts : int64 (n_tasks + 1,)
    """
    task = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.lexsort((squared.sum(axis=1), clusters, task))
    again = (np.diff(task[order], prepend=-1) == 0) & (np.diff(clusters[order], prepend=-1) == 0)
    alone = np.sort(order[again & (clusters[order] >= 0)])
    found = clusters.copy()
    found[alone] = clusters.max() + 1 + np.arange(len(alone))
    return found


def _centers(means: Floats, clusters: Ints) -> Floats:
    """Return the mean (n, m) of each task class's cluster; of one without a cluster, itself."""
    sizes, sums = weighted_sums(clusters, means, np.ones(len(means)))
    return np.where(clusters[:, None] >= 0, (sums / sizes[:, None])[clusters], means)


def _task_means(values: Floats, starts: Ints) -> Floats:
    """Return the mean (n, m) of each task, once for each of its classes."""
    ways = np.diff(starts)
    return np.repeat(np.add.reduceat(values, starts[:-1], axis=0) / ways[:, None], ways, axis=0)


def _shifts(deviations: Floats, used: npt.NDArray[np.bool_], starts: Ints) -> Floats:
    """Return by how much all classes of a task are shifted (n, m), shrunk by what chance alone would show.

    The deviations of a task's K classes from their clusters have a mean whose variance is that of the shifts, plus the
    variance inside tasks over K. Both are estimated as averages over all coordinates.
    """
    ways = np.repeat(np.diff(starts), np.diff(starts)).astype(np.float64)
    mean = _task_means(np.where(used[:, None], deviations, 0.0), starts)
    inside = float(((deviations - mean)[used] ** 2).sum()) / max(int((used * (1 - 1 / ways)).sum() * mean.shape[1]), 1)
    between = float((mean[used] ** 2).mean() - (inside / ways[used]).mean())
    share = ways * max(between, 0.0) / (ways * max(between, 0.0) + inside + 1e-300)
    return mean * share[:, None]
