r"""Find the most probable partition of task classes, without a number of clusters and without q.

The model. The mean :math:`x` of a task class lies around the mean of its global class with the covariance of its
samples divided by their number; the samples say what that is, since those of one task class are known to belong
together. Class means are normal around the overall mean. Any number of classes is as probable as any other, and how
even their frequencies are is estimated (`mela.labeling.size_prior`). Fragments of one class never meet in a task,
different classes do, at a rate that their sizes give. So each pair of clusters has a log posterior odds of being one
class, in closed form; the pair with the largest is merged until no odds are favourable (Heller and Ghahramani,
"Bayesian Hierarchical Clustering", 2005, build trees by such a rule). Then task classes change sides, and clusters
merge again, as long as the partition gets more probable (`mela.labeling.partition.refine`).

All pairs of up to 5,000 clusters are compared. Of more, only neighbours are (`mela.labeling.near_merging`). Where this
shows that there are far fewer classes than fragments of K-means could tell apart, merging starts again from those.

Two phases. In the first all classes share the shape of their noise, each task class having its own scale; it ends with
pure fragments, since real classes differ in shape and the model takes the ends of a long one for two. In the second
each cluster has its own covariance, estimated from its own samples, and what belongs together is joined.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.assignment import distinct
from mela.labeling.centroids import nearest
from mela.labeling.clusters import Merges, collect, cut, meeting_rate, of_sources, weighted_sums
from mela.labeling.merge_odds import join
from mela.labeling.nearest_points import ALL_PAIRS, nearest_points
from mela.labeling.partition import Evidence, refine
from mela.labeling.space import Space, noise_scales, sample_space
from mela.labeling.task_classes import ClassMeans, TaskSamples

FRAGMENTS = 4000
# fragments that a class needs at least, so that they are pure
OF_A_CLASS = 3
# task classes beyond which fragments would have too many of them
MANY = 25 * FRAGMENTS
EVEN = 1.0
BLOCK = 1024
# what helps where merging does not
OTHERWISE = (
    "take LearnLabeler, Algorithm 2 (in the pipeline: compare.merged and compare.merged_soft false, compare.pruned "
    "true, use: pruned)"
)


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Hold the merges of one phase.

    Attributes
    ----------
    n_items : int
        Clusters before it.
    odds : float64 (n_merges,)
        Log odds for one class of each merge, in their order.
    kept : int
        Merges that were made; the rest were tried and rejected.
    """

    n_items: int
    odds: Floats
    kept: int


@dataclass(frozen=True, kw_only=True)
class Merged:
    """Hold the result of `merge_classes`.

    Attributes
    ----------
    space : Space
    points : float64 (n, d)
        Task classes in it.
    assignments : int64 (n,)
        Class of each task class, from 0; -1 if two classes of its task met in one fragment, so that it was left out.
    phases : (Phase, Phase)
    fragments : int64 (n,)
        Task classes that were together from the start; -1 as above.
    """

    space: Space
    points: Floats
    assignments: Ints
    phases: tuple[Phase, Phase]
    fragments: Ints


def merge_classes(samples: TaskSamples, classes: ClassMeans, *, seed: int = 0) -> Merged:
    """Find the most probable partition of task classes by a greedy search.

    Parameters
    ----------
    samples : TaskSamples
    classes : ClassMeans
        Task classes of these samples.
    seed : int
        Seed of the first fragments, which 5,001 to 100,000 task classes of few classes have.

    Raises
    ------
    MelaError
        Every task class has a single sample, so that nothing says how much samples of one class differ.
    """
    sizes, starts = classes.sizes, classes.starts
    freedom = (sizes - 1).astype(np.float64)
    if not freedom.any():
        raise MelaError(
            f"merging: each of the {len(sizes)} task classes has a single sample, so it is unknown how much samples of "
            f"one class differ; give two samples of some, or {OTHERWISE}"
        )
    space = sample_space(samples, classes)
    points = space.transform(classes.means)
    squares = np.zeros(len(sizes))
    for own, rows in _deviations(samples, space, points):
        squares += np.bincount(rows, (own**2).sum(axis=1), minlength=len(sizes))
    precision = sizes / sizes.mean() / noise_scales(squares, freedom, points.shape[1])
    n, rate = len(sizes), meeting_rate(starts)
    evidence = Evidence(points=points, weights=precision, starts=starts, between=space.between, rate=rate)

    first = np.arange(n)
    # gamma = 1: all frequencies are as probable, until there are clusters that show how even they are
    few = FRAGMENTS // OF_A_CLASS + 1 if ALL_PAIRS < n <= MANY else 0
    pure, merges, kept = evidence.merge(first, EVEN, least=few)
    if pure.max() < few:
        # neighbours show that classes are few enough for pure fragments, of which all pairs can be compared
        first = _fragments(points, starts, seed)
        pure, merges, kept = evidence.merge(first, EVEN)
    pure, gamma = refine(evidence, pure)

    k, d = int(pure.max()) + 1, points.shape[1]
    degrees = np.bincount(pure[pure >= 0], freedom[pure >= 0], k).astype(np.float64)
    # only where the samples of two clusters show more directions than there are, covariances can be compared; of very
    # many clusters, these are looked for among those that have half of it themselves
    some = np.arange(k) if k <= ALL_PAIRS else np.flatnonzero(degrees > d / 2)
    number = np.full(k, -1)
    number[some] = np.arange(len(some))
    shown = np.where(pure >= 0, number[pure], -1)
    joins: Merges = []
    if len(some):
        clusters = collect(shown, points, sizes / sizes.mean(), starts)
        scatter = np.zeros((len(some), d, d))
        for own, rows in _deviations(samples, space, points):
            _add_scatter(scatter, own, shown[rows])
        besides = (k - len(some), int(((pure >= 0) & (shown < 0)).sum()))
        found = join(clusters, scatter, degrees[some], space.between, rate, gamma, besides)
        joins = [(int(some[u]), int(some[v]), odds) for u, v, odds in found]
    refused = [i for i, (_, _, odds) in enumerate(joins) if odds <= 0]
    worth = refused[0] if refused else len(joins)
    return Merged(
        space=space,
        points=points,
        fragments=first,
        assignments=np.where(pure >= 0, cut(k, joins[:worth])[pure], -1),
        phases=(
            Phase(n_items=int(first.max()) + 1, odds=np.array([odds for _, _, odds in merges]), kept=kept),
            Phase(n_items=k, odds=np.array([odds for _, _, odds in joins]), kept=worth),
        ),
    )


def left_out(points: Floats, sizes: Ints, clusters: Ints, sources: Ints | None = None) -> Ints:
    """Return the cluster (n,) with the center nearest to each task class, centers computed without that class.

    A cluster of one has no center then, and its task class goes to another. Where sources are known, the center of a
    task class's own cluster is computed without any task class of its source.

    Parameters
    ----------
    points : float64 (n, d)
        Task classes.
    sizes : int64 (n,)
        Their samples.
    clusters : int64 (n,)
        Clusters from 0; -1 for task classes without one. An unused number is no cluster.
    sources : int64 (n,), optional
        Source of each task class, from 0.
    """
    weights, sums = weighted_sums(clusters, points, sizes)
    centers = sums / np.maximum(weights, 1)[:, None]
    lengths = np.where(weights > 0, (centers**2).sum(axis=1), np.inf)
    parts = of_sources(clusters, np.arange(len(points)) if sources is None else sources)[1]
    part_weights, part_sums = weighted_sums(parts, points, sizes)
    used = np.flatnonzero(weights > 0)
    # of very many clusters an index finds the nearest two, of which one may be its own
    near = used[nearest_points(points, 2, centers[used])] if len(used) > ALL_PAIRS else None
    found = np.empty(len(points), dtype=np.int64)
    for start in range(0, len(found), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(found)))
        inside = np.flatnonzero(clusters[rows] >= 0)
        own, part = clusters[rows[inside]], parts[rows[inside]]
        rest = weights[own] - part_weights[part]
        others = (sums[own] - part_sums[part]) / np.maximum(rest, 1)[:, None]
        away = np.where(rest > 0, ((points[rows[inside]] - others) ** 2).sum(axis=1), np.inf)
        if near is None:
            squared = lengths - 2 * points[rows] @ centers.T + (points[rows] ** 2).sum(axis=1)[:, None]
            squared[inside, own] = away
            found[rows] = squared.argmin(axis=1)
        else:
            squared = ((points[rows, None] - centers[near[rows]]) ** 2).sum(axis=2)
            squared[near[rows] == clusters[rows][:, None]] = np.inf
            found[rows] = near[rows, squared.argmin(axis=1)]
            stays = away <= squared.min(axis=1)[inside]
            found[rows[inside[stays]]] = own[stays]
    return found


def _deviations(samples: TaskSamples, space: Space, points: Floats) -> Iterator[tuple[Floats, Ints]]:
    """Yield samples' deviations (b, d) from their task class, in units of its noise, and the task classes (b,)."""
    scale = 1 / np.sqrt(samples.sizes.mean())
    for features, rows in samples.blocks():
        yield (space.transform(features) - points[rows]) * scale, rows


def _add_scatter(scatter: Floats, deviations: Floats, clusters: Ints) -> None:
    order = np.argsort(clusters, kind="stable")
    found, first = np.unique(clusters[order], return_index=True)
    for cluster, part in zip(found, np.split(deviations[order], first[1:]), strict=True):
        if cluster >= 0:
            scatter[cluster] += part.T @ part


def _fragments(points: Floats, starts: Ints, seed: int) -> Ints:
    """Find small pure clusters (n,) by K-means under the local constraints; -1 marks tasks that collide."""
    from sklearn.cluster import kmeans_plusplus

    some = np.random.default_rng(seed).permutation(len(points))[: 4 * FRAGMENTS]
    centers, _ = kmeans_plusplus(points[some], FRAGMENTS, random_state=seed)
    for _ in range(3):
        found = nearest(points, centers)
        used = distinct(found, starts)
        compact = np.unique(found[used], return_inverse=True)[1].astype(np.int64)
        sizes, sums = weighted_sums(compact, points[used], np.ones(len(compact)))
        centers = sums / sizes[:, None]
    clusters = np.full(len(points), -1, dtype=np.int64)
    clusters[used] = compact
    return clusters
