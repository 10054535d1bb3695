r"""Task classes that lie apart although they are one class, because the people who made them differ.

The mean of a task class is that of its class, plus an effect of whoever made the task, plus noise of its samples. One
person's samples are alike, so their noise does not show how large the effects are. Merging then finds a
separate class for each person's version of a class, since its model has noise alone. This module finds clusters
without such a model:

1. Measure how far apart task classes are by the neighbours that they share (`mela.labeling.neighbours`). Neighbours are
   found three times: by the angle between features; in units of the noise inside task classes; and by the angle in
   these units. Where looks of other people could be tried out (`mela.models.looks`), their covariance L is added to
   the noise, and at first the average of the two distances by angle takes the place of all three.
2. Build a tree by average linkage, without regard to which task classes met in tasks.
3. Cut it where `match` is largest (`mela.labeling.pair_quality`). Pairs inside tasks are known to be different classes;
   since the tree does not use them, they test each cut independently. Of the three trees, take the one whose cut has
   the largest `match`.
4. Estimate the covariance of task classes about the centers of their clusters,

   .. math:: S = \frac{D^\top D + m N}{n - k + m},

   where D (n, m) are the deviations from the centers of k clusters and N is the covariance of the noise, which counts
   as much as m task classes. Begin again in units of S: directions in which people differ count less. Speaker
   diarization re-estimates such covariances in turns (Landini et al., "Bayesian HMM clustering of x-vector sequences
   (VBx) in speaker diarization", 2022).
5. S fits the clusters that it comes from, right or wrong. So it has to help other tasks: half of the tasks give S, the
   other half is clustered in its units and judged, and the other way round. The turns end where the sum of both
   `match` rises no more, or where that of all tasks falls, and the clusters are those before that.
6. Task classes of one task that share a cluster cannot all be right. The one closest to the center stays, and each of
   the others becomes a cluster of its own.

Where people shift all classes of a task alike, the mean of each task is taken away first. That alone drives the classes
of a task apart, so that pairs inside tasks are no independent judge any more. How large a `match` it makes is measured
on tasks that are dealt at random from all task classes, and this is subtracted.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import weighted_sums
from mela.labeling.neighbours import shared_neighbours
from mela.labeling.pair_quality import PairQuality, cut_matches, pair_quality
from mela.labeling.space import Space, noise_of, space_of
from mela.labeling.task_classes import ClassMeans, TaskSamples

TURNS = 10
# by how much more neighbours have to join than merging
LARGER = 1.1


class Noise(NamedTuple):
    """Hold the covariance (m, m) of a task class about its class, and the degrees of freedom by which it is known."""

    covariance: Floats
    freedom: int


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
    noise = Noise(*noise_of(samples, classes))
    if samples.looks is not None:
        noise = Noise(noise.covariance + samples.looks, noise.freedom)
    tasks = _Tasks(means=classes.means, fragments=fragments, starts=classes.starts, looks=samples.looks is not None)
    clusters, quality = tasks.first(noise)
    certain = other.match > 2 * other.match_error
    # where merging joins as many as neighbours do, no look keeps task classes apart
    if certain and not quality.beats(other) and quality.shared < LARGER * other.shared:
        return None
    clusters, quality = _in_turns(tasks, noise, clusters, quality)
    surely = quality.beats(other)
    if certain and not surely:
        return None
    without, less = _without_shifts(tasks, noise)
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
    covariance, freedom = _effects(means, clusters, noise.covariance)
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


@dataclass(frozen=True, kw_only=True)
class _Tasks:
    """Hold task classes (n, m), their fragments (n,), the bounds of their tasks, and whether the noise has looks."""

    means: Floats
    fragments: Ints
    starts: Ints
    looks: bool

    def first(self, noise: Noise) -> tuple[Ints, PairQuality]:
        """Return the clusters (n,) by features as they are, and in units of the noise; -1 as in fragments."""
        raw = _unit(self.means - self.means.mean(axis=0))
        if not self.looks:
            return self._best([*self._views(noise), raw])
        return self._judged((self._distances(_unit(self._scaled(noise))) + self._distances(raw)) / 2)

    def partition(self, noise: Noise) -> tuple[Ints, PairQuality]:
        """Return the clusters (n,) in units of the noise; -1 as in fragments."""
        return self._best(self._views(noise))

    def _scaled(self, noise: Noise) -> Floats:
        return space_of(self.means, *noise).transform(self.means)

    def _views(self, noise: Noise) -> list[Floats]:
        scaled = self._scaled(noise)
        return [scaled, _unit(scaled)]

    def _best(self, views: list[Floats]) -> tuple[Ints, PairQuality]:
        """Return the clusters with the largest `match` among those of several trees."""
        return max((self._judged(self._distances(points)) for points in views), key=lambda found: found[1].match)

    def _distances(self, points: Floats) -> Floats:
        """Return how far apart the fragments are at points of the task classes (n, d), condensed."""
        sizes, sums = weighted_sums(self.fragments, points, np.ones(len(points)))
        return shared_neighbours(sums / sizes[:, None])

    def _judged(self, distances: Floats) -> tuple[Ints, PairQuality]:
        """Return the clusters of that cut of the tree whose `match` is largest."""
        tree = linkage(distances, "average")
        kept = int(cut_matches(tree, self.fragments, self.starts).argmax())
        # the height of a step is then its number
        tree[:, 2] = np.arange(1, len(tree) + 1)
        found = fcluster(tree, kept + 0.5, "distance").astype(np.int64) - 1
        clusters = np.where(self.fragments >= 0, found[self.fragments], -1)
        return clusters, pair_quality(clusters, self.starts)

    def some(self, tasks: Ints) -> "_Tasks":
        """Return some of the tasks."""
        bounds = zip(self.starts[tasks], self.starts[tasks + 1], strict=True)
        rows = np.concatenate([np.arange(first, last) for first, last in bounds])
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[tasks])])
        used, fragments = np.unique(self.fragments[rows], return_inverse=True)
        own = fragments - int(used[0] < 0)
        return _Tasks(means=self.means[rows], fragments=own, starts=starts, looks=self.looks)

    def halves(self) -> list["_Tasks"]:
        """Return two halves of the tasks, drawn at random; none where one of them would have no pairs inside tasks."""
        order = np.random.default_rng(0).permutation(len(self.starts) - 1)
        halves = [self.some(np.sort(half)) for half in np.array_split(order, 2) if len(half)]
        return halves if len(halves) == 2 and all((np.diff(half.starts) > 1).any() for half in halves) else []


def _in_turns(tasks: _Tasks, noise: Noise, clusters: Ints, quality: PairQuality) -> tuple[Ints, PairQuality]:
    """Return clusters in units of the covariance that they show, found in turns, as long as this helps other tasks."""
    halves = tasks.halves()
    if not halves:
        return clusters, quality
    own = [half.first(noise) for half in halves]
    best = sum(found.match for _, found in own)
    for _ in range(TURNS):
        shown = [_effects(half.means, found, noise.covariance) for half, (found, _) in zip(halves, own, strict=True)]
        own = [half.partition(other) for half, other in zip(halves, reversed(shown), strict=True)]
        reached = sum(found.match for _, found in own)
        if reached <= best:
            break
        again, judged = tasks.partition(_effects(tasks.means, clusters, noise.covariance))
        if judged.match < quality.match:
            break
        best, clusters, quality = reached, again, judged
    return clusters, quality


def _effects(means: Floats, clusters: Ints, noise: Floats) -> Noise:
    """Return the covariance S of task classes about the centers of their clusters, and its degrees of freedom."""
    rest = (means - _centers(means, clusters))[clusters >= 0]
    freedom = len(rest) - int(clusters.max()) - 1 + len(noise)
    return Noise((rest.T @ rest + len(noise) * noise) / freedom, freedom)


def _without_shifts(tasks: _Tasks, noise: Noise) -> tuple[Ints, PairQuality]:
    """Return clusters (n,) of task classes less the means of their tasks; their quality is that beyond chance."""
    dealt = np.random.default_rng(0).permutation(len(tasks.means))

    def found(means: Floats, fragments: Ints) -> tuple[Ints, PairQuality]:
        centered = means - _task_means(means, tasks.starts)
        return replace(tasks, means=centered, fragments=fragments).first(noise)

    clusters, quality = found(tasks.means, tasks.fragments)
    _, chance = found(tasks.means[dealt], tasks.fragments[dealt])
    return clusters, replace(quality, match=quality.match - chance.match)


def _unit(points: Floats) -> Floats:
    """Return points (n, d) of length 1."""
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), np.finfo(np.float64).tiny)


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
