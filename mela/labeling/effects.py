r"""Task classes that lie apart although they are one class, because the people who made them differ.

The mean of a task class is that of its class, plus an effect of whoever made the task, plus noise of its samples. One
person's samples are alike, so their noise does not show how large the effects are. Merging then finds a
separate class for each person's version of a class, since its model has noise alone. This module finds clusters
without such a model:

1. Measure how far apart task classes are by the neighbours that they share (`mela.labeling.neighbours`). Neighbours are
   found in several ways: by the angle between features; in units of the noise inside task classes; and by the angle in
   these units. Where looks of other people could be tried out (`mela.models.looks`), their covariance L is added to
   the noise, and the angle in units of noise and looks is one way more. The distances are averaged.
2. Build a tree by average linkage, without regard to which task classes met in tasks.
3. Cut it where `match` is largest (`mela.labeling.pair_quality`). Pairs inside tasks are known to be different classes;
   since the tree does not use them, they test each cut independently. No cut leaves fewer clusters than the widest task
   has classes. Looks may hide classes from most of these ways. So a second tree knows only the angle between features
   and that in units of noise and looks. It takes the place of the first if its `match` is larger by more than two
   standard errors.
4. Estimate the covariance of task classes about the centers of their clusters,

   .. math:: S = \frac{D^\top D + m \Sigma}{n - k + m},

   where D (n, m) are the deviations from the centers of k clusters, and the covariance Sigma of the noise counts as
   much as m task classes. Measure distances again in units of S, so that directions in which people differ count
   less, and average them with those of the turns before. Speaker diarization re-estimates such covariances in turns
   (Landini et al., "Bayesian HMM clustering of x-vector sequences (VBx) in speaker diarization", 2022).
5. S fits the clusters that it comes from, right or wrong. So it has to help other tasks: half of the tasks give S, the
   other half is clustered in its units and judged, and the other way round. The turns end where the sum of both
   `match` rises no more, or where that of all tasks falls, and the clusters are those before that.
6. Task classes of one task that share a cluster cannot all be right. The one closest to the center stays, and each of
   the others becomes a cluster of its own.

Rounds of training learn the finest cut whose `match` is within a standard error of the largest, and no step 6: what a
network has learned as one class looks like one afterwards, but what is apart can still be joined.

Two people's cameras may make all their images alike, and one person's even more so. Steps 1 to 3 are therefore also
done with scores (`mela.labeling.pair_scores`) in place of the distances by which neighbours are found: how close two
task classes are compared with other pairs of the same two tasks. The other steps go on with scores where this cut is
better by more than a standard error, as those tasks judge it that have not chosen it.

Of more than 5,000 task classes, an index finds the neighbours, and only pairs that share some are kept
(`mela.labeling.near_trees`). Scores need a table of all pairs of owners, so they are then not tried.

Where people shift all classes of a task alike, the classes of a task are more alike than others, and pairs inside tasks
would judge every cut too low. So the shifts are estimated and taken away before all this (`mela.labeling.shifts`).
Classes of a task may also be alike because they are akin, as all fish are. Nothing is taken away where merging finds
each class by itself, since different shifts of many people would keep its task classes apart
(`mela.labeling.merge_labeler`). Cameras of a few kinds do not, and their classes then remain a cluster for each kind.
"""

from dataclasses import dataclass, replace

import numpy as np

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import cluster_means
from mela.labeling.expected_ari import same_share
from mela.labeling.pair_quality import PairQuality
from mela.labeling.shifts import Shifts, no_shifts, without_shifts
from mela.labeling.space import Space, discriminant_space, noise_of, space_of
from mela.labeling.task_classes import ClassMeans, TaskSamples
from mela.labeling.trees import Found, Noise, TaskClasses

TURNS = 10
# by how much more neighbours have to join than merging
LARGER = 1.1


@dataclass(frozen=True, kw_only=True)
class Effects:
    """Hold the partition that `find_effects` arrives at.

    Attributes
    ----------
    space : Space
        Directions in which the clusters differ most; noise and effects together have unit covariance.
    shifts : Shifts
        Of tasks.
    means : float64 (n, m)
        Task classes without the shifts of their tasks.
    assignments : int64 (n,)
        Cluster of each task class, from 0, no two of a task alike; -1 where the fragment of another class of its task
        was the same.
    cut : int64 (n,)
        The same before classes of one task were told apart.
    finest : int64 (n,)
        Clusters of the finest cut whose `match` is within a standard error of the largest (`Found.finest`).
    quality : PairQuality
        Of the cut.
    error : float or None
        a / b of such a cut, by tasks that have not chosen it (`mela.labeling.cuts.Cuts.error`).
    covariance : float64 (m, m)
        S, of a task class about its class.
    """

    space: Space
    shifts: Shifts
    means: Floats
    assignments: Ints
    cut: Ints
    finest: Ints
    quality: PairQuality
    error: float | None
    covariance: Floats

    def changed(self, cut: Ints, finest: Ints, error: float | None, quality: PairQuality, starts: Ints) -> "Effects":
        """Return the partition with another cut, and another finest one (n,); its space remains.

        `error` is a / b of the cut, `quality` is its quality, and `starts` are the bounds of the tasks.
        """
        points = self.space.transform(self.means)
        squared = (points - cluster_means(cut, points)[1][cut]) ** 2
        return replace(
            self,
            assignments=_apart(cut, squared, starts),
            cut=cut,
            finest=finest,
            quality=quality,
            error=error,
        )


def find_effects(
    samples: TaskSamples, classes: ClassMeans, fragments: Ints, other: PairQuality, *, firm: bool = False
) -> tuple[Effects | None, float | None]:
    """Find clusters of task classes, and how much task classes of one cluster differ.

    Parameters
    ----------
    samples : TaskSamples
        Some task class has two samples or more.
    classes : ClassMeans
        Of these samples.
    fragments : int64 (n,)
        Task classes that share a number stay together, which keeps the tree small; -1 is left out. With
        ``numpy.arange(n)`` every task class is a leaf of the tree. If the sources of tasks are known, these are the
        classes of each source.
    other : PairQuality
        Of a partition that knows no effects.
    firm : bool
        Whether the other partition explains the task classes by itself. Then neither shifts nor scores are looked for,
        and the clusters must be surely better also as tasks judge them that have not chosen them.

    Returns
    -------
    effects : Effects or None
        None where these clusters are not surely better than the other partition, or fewer than a task has ways.
    same : float or None
        Estimated share of all pairs of task classes that are of one class (`mela.labeling.expected_ari.same_share`).
    """
    noise = [Noise(*noise_of(samples, classes))]
    if samples.looks is not None:
        noise.append(Noise(noise[0].covariance + samples.looks, noise[0].freedom))
    shifts, means = (no_shifts(classes.means), classes.means) if firm else without_shifts(classes, fragments)
    tasks = TaskClasses(means=means, fragments=fragments, starts=classes.starts, sources=classes.sources)
    views = tasks.views(noise)
    found = tasks.first(views)
    scored = None if firm else tasks.with_scores()
    if scored is not None:
        by_scores = scored.views(noise)
        of_scores = scored.first(by_scores)
        if of_scores.holds_better(found):
            tasks, views, found = scored, by_scores, of_scores
    same = same_share([tasks.judged(views[own]).cuts for own in (0, 1, -1)], classes.starts)
    certain = other.match > 2 * other.match_error
    # where merging joins as many as neighbours do, no difference between people keeps task classes apart
    if certain and not found.quality.beats(other) and found.quality.shared < LARGER * other.shared:
        return None, same
    found = _in_turns(tasks, noise, found)
    if found.clusters.max() + 1 < classes.ways.max() or not found.quality.beats(other):
        return None, same
    error = found.cuts.error()
    if not _is_better(found, error, other, firm):
        return None, same
    deviations = means - _centers(means, found.clusters)
    covariance, freedom = _effects(means, found.clusters, noise[-1].covariance)
    space = discriminant_space(means, found.clusters) or space_of(means, covariance, freedom)
    effects = Effects(
        space=space,
        shifts=shifts,
        means=means,
        assignments=_apart(found.clusters, (deviations @ space.components) ** 2, classes.starts),
        cut=found.clusters,
        finest=found.finest,
        quality=found.quality,
        error=error,
        covariance=covariance,
    )
    return effects, same


def _is_better(found: Found, error: float | None, other: PairQuality, firm: bool) -> bool:
    """Tell whether clusters are better than the other partition as tasks judge them that have not chosen them.

    `error` is `Cuts.error` of the clusters. It is None where too few tasks can judge, and then a firm partition stays.
    """
    if error is None:
        return not firm
    # of many cuts the best one looks good by chance, too, but not to tasks that have not chosen it
    judged = PairQuality.by_error(error, int(found.cuts.known.sum()), found.quality.shared)
    return judged.beats(other) if firm else judged.match > other.match


def _in_turns(tasks: TaskClasses, noise: list[Noise], found: Found) -> Found:
    """Return clusters in units of the covariance that they show, found in turns, as long as this helps other tasks."""
    halves = tasks.halves()
    if not halves:
        return found
    known, own = noise[-1].covariance, [half.first(half.views(noise)) for half in halves]
    best = sum(half.quality.match for half in own)
    for turn in range(1, TURNS + 1):
        shown = [_effects(half.means, one.clusters, known) for half, one in zip(halves, own, strict=True)]
        own = [half.again(one, turn, other) for half, one, other in zip(halves, own, reversed(shown), strict=True)]
        reached = sum(half.quality.match for half in own)
        if reached <= best:
            break
        again = tasks.again(found, turn, _effects(tasks.means, found.clusters, known))
        if again.quality.match < found.quality.match:
            break
        best, found = reached, again
    return found


def _effects(means: Floats, clusters: Ints, noise: Floats) -> Noise:
    """Return the covariance S of task classes about the centers of their clusters, and its degrees of freedom."""
    rest = (means - _centers(means, clusters))[clusters >= 0]
    freedom = len(rest) - int(clusters.max()) - 1 + len(noise)
    return Noise((rest.T @ rest + len(noise) * noise) / freedom, freedom)


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
    return np.where(clusters[:, None] >= 0, cluster_means(clusters, means)[1][clusters], means)
