r"""Task classes that lie apart although they are one class, because the people who made them differ.

The mean of a task class is that of its class, plus an effect of whoever made the task, plus noise of its samples. One
person's samples are alike, so their noise does not show how large the effects are. Merging then finds a
separate class for each person's version of a class, since its model has noise alone. This module finds the partition
and the effects together:

1. Measure differences between task classes in units of the noise inside task classes.
2. Build Ward's tree of all task classes, without regard to which of them met in tasks.
3. Cut it where `match` is largest (`mela.labeling.pair_quality`). Pairs inside tasks are known to be different classes;
   since the tree does not use them, they test each cut independently.
4. Estimate the covariance of task classes about the mean of their cluster,

   .. math:: S = \frac{D^\top D + m N}{n - k + m},

   where D (n, m) are the deviations from the means of k clusters and N is the covariance of the noise, which counts as
   much as m task classes. Take S in place of N, and begin again, until `match` rises no more.

Directions in which people differ thus count less in each round, and those in which classes differ count more. Where
people shift all classes of a task alike, the mean of each task is taken away first; in later rounds, the mean
deviation of its task classes from the centers of their clusters. Speaker diarization re-estimates two such covariances
in turns (Landini et al., "Bayesian HMM clustering of x-vector sequences (VBx) in speaker diarization", 2022).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import weighted_sums
from mela.labeling.pair_quality import PairQuality, cut_matches, pair_quality
from mela.labeling.space import Space, noise_of, space_of
from mela.labeling.task_classes import ClassMeans, TaskSamples

ROUNDS = 20


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
        Cluster of each task class, from 0; -1 where the fragment of another class of its task was the same.
    quality : PairQuality
        Of these clusters, judged by the pairs inside tasks.
    covariance : float64 (m, m)
        S, of a task class about its class.
    matches : tuple of float
        `match` of every round but the last, which was no better.
    """

    space: Space
    means: Floats
    assignments: Ints
    quality: PairQuality
    covariance: Floats
    matches: tuple[float, ...]


def find_effects(samples: TaskSamples, classes: ClassMeans, fragments: Ints, other: PairQuality) -> Effects | None:
    """Find clusters of task classes, and how much task classes of one cluster differ.

    Shifts are looked for where clusters without them do not stand the judgement of pairs inside tasks, since a judge is
    less independent once the classes of a task were moved together.

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
    noise = noise_of(samples, classes)
    plain = _rounds(noise, classes, fragments, shifted=False)
    if other.match > 2 * other.match_error and not plain.quality.beats(other):
        return None
    shifted = _rounds(noise, classes, fragments, shifted=True)
    best = shifted if shifted.quality.beats(plain.quality) else plain
    enough = best.assignments.max() + 1 >= classes.ways.max()
    return best if enough and best.quality.beats(other) else None


def _rounds(known: tuple[Floats, int], classes: ClassMeans, fragments: Ints, *, shifted: bool) -> Effects:
    """Find clusters and effects in turns, with or without a shift that all classes of a task share."""
    noise, freedom = known
    means = classes.means
    if shifted:
        means = means - _task_means(means, classes.starts) + means.mean(axis=0)
    space, best = space_of(means, noise, freedom), None
    for _ in range(ROUNDS):
        clusters = _cut(space.transform(means), fragments, classes.starts)
        quality = pair_quality(clusters, classes.starts)
        if best is not None and quality.match <= best.quality.match:
            break
        used = clusters >= 0
        if shifted:
            means = classes.means - _shifts(classes.means - _centers(means, clusters), used, classes.starts)
        rest = (means - _centers(means, clusters))[used]
        freedom = len(rest) - int(clusters.max()) - 1 + len(noise)
        covariance = (rest.T @ rest + len(noise) * noise) / freedom
        space = space_of(means, covariance, freedom)
        best = Effects(
            space=space,
            means=means,
            assignments=clusters,
            quality=quality,
            covariance=covariance,
            matches=(*(best.matches if best else ()), quality.match),
        )
    assert best is not None
    return best


def _cut(points: Floats, fragments: Ints, starts: Ints) -> Ints:
    """Return the clusters (n,) of that cut of Ward's tree whose `match` is largest; -1 as among the fragments."""
    sizes, sums = weighted_sums(fragments, points, np.ones(len(points)))
    tree = linkage(sums / sizes[:, None], "ward")
    kept = int(cut_matches(tree, fragments, starts).argmax())
    # the height of a step is then its number
    tree[:, 2] = np.arange(1, len(tree) + 1)
    clusters = fcluster(tree, kept + 0.5, "distance").astype(np.int64) - 1
    return np.where(fragments >= 0, clusters[fragments], -1)


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
