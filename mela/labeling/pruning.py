"""Cluster task classes by Algorithm 2: passes under the local constraints, with rare clusters pruned between them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from array_api_compat import device

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.centroids import BLOCK_ROWS, Array, Centroids, extend, norms
from mela.labeling.pair_quality import pair_quality
from mela.labeling.task_classes import ClassMeans


@dataclass(frozen=True, kw_only=True)
class Pass:
    """Describe one pass over the tasks.

    Attributes
    ----------
    clusters : int
        Before the pass.
    threshold : float
        Tasks below which a cluster goes.
    kept : int
        Clusters after it.
    tasks_clustered : float
        Share of the tasks whose classes had different nearest centroids when they were visited.
    precision, match, match_error : float
        Estimates of the quality of this pass's clusters (`mela.labeling.pair_quality`).
    """

    clusters: int
    threshold: float
    kept: int
    tasks_clustered: float
    precision: float
    match: float
    match_error: float


@dataclass(frozen=True, kw_only=True)
class Pruned:
    """Hold the result of Algorithm 2.

    Attributes
    ----------
    centroids : float64 (n_clusters, m)
    counts : int64 (n_clusters,)
        Tasks matched to each cluster in the chosen pass.
    path : list of Pass
    chosen : int
        The pass, from 0, that the clusters come from: the last one unless pruning ran away.
    """

    centroids: Floats
    counts: Ints
    path: list[Pass]
    chosen: int

    @property
    def settled(self) -> bool:
        """True if the last pass removed no cluster, so that `max_passes` did not cut the search short."""
        return self.path[-1].kept == self.path[-1].clusters

    @property
    def guarded(self) -> bool:
        """True if pruning ran away, so that the clusters are those of an earlier pass, before that pass removed any."""
        return self.chosen < len(self.path) - 1 or len(self.centroids) > self.path[-1].kept


def prune_clusters(
    classes: ClassMeans,
    *,
    n_clusters: int,
    q: float,
    min_count: int = 1,
    cumulative_weights: bool = False,
    guard: bool = True,
    max_passes: int = 100,
    seed: int,
) -> Pruned:
    r"""Cluster task classes under the local constraints and prune rare clusters until their number settles.

    Centroids start as the class means of random tasks. A pass visits the tasks in a seeded order: each class of a task
    goes to its nearest centroid (Eq. 12); unless two of them meet at one centroid, every matched centroid becomes the
    running mean of what it received (Eq. 13),

    .. math:: g_v \leftarrow \frac{N_v g_v + I \bar\psi}{N_v + I}, \qquad N_v \leftarrow N_v + I, \qquad N_v = 1
        \text{ at the start of a pass},

    at once, so that later tasks of the pass meet the moved centroid. Then clusters with
    ``count < max(mean(count) - q * sqrt(Var), min_count)`` are removed (Eq. 14-15), where count is in tasks and Var is
    that of a cluster which takes part in each matched task with probability p: the sum of p (1 - p) over these tasks.
    Here p is the ways of the task over the clusters that are left. Passes end when none is removed.

    Parameters
    ----------
    classes : ClassMeans
    n_clusters : int
        J, clusters to start from.
    q : float
        Tolerance of the pruning in standard deviations; a smaller one removes more.
    min_count : int
        Tasks that a cluster needs whatever the threshold, which is negative when there are few tasks.
    cumulative_weights : bool
        Do not reset N_v, the weights of the running means, between passes; the paper resets them, the authors' code
        does not. The counts for pruning start from 0 in every pass in either case.
    guard : bool
        Pruning can run away: each class that loses its cluster makes the tasks that hold it collide, they are not
        counted, and more clusters fall below the threshold. True takes the last pass whose `match` is not below the
        best one's by more than two standard errors, which looks at no truth; False is Algorithm 2 to the letter.
    max_passes : int
    seed : int
        Seed of the initial tasks and the order of the visits.

    Raises
    ------
    MelaError
        Fewer task classes than `n_clusters`, fewer clusters than the ways of a task, or, without `guard`, pruning that
        would leave fewer.

    References
    ----------
    Wang, Pontil and Ciliberto, "The Role of Global Labels in Few-Shot Classification and How to Infer Them", 2021.
    """
    _validate(classes, n_clusters)
    n_tasks, ways = len(classes.ways), classes.ways
    generator = np.random.default_rng(seed)
    centroids = _initial_centroids(classes, n_clusters, generator)
    order = generator.permutation(n_tasks)
    radius = float(norms(classes.means).max())
    weights, counts = np.ones(n_clusters), np.zeros(n_clusters, dtype=np.int64)
    path: list[Pass] = []
    best, worst, chosen, found = -np.inf, -np.inf, 0, (centroids, counts)
    for _ in range(max_passes):
        counts[:] = 0
        if not cumulative_weights:
            weights[:] = 1
        moving = Centroids(centroids, radius)
        matched, assignments = run_pass(classes.means, classes.sizes, classes.starts, order, moving, weights, counts)
        share = ways[matched] / len(centroids)
        variance = float((share * (1 - share)).sum())
        threshold = float(counts.mean() - q * np.sqrt(variance))
        keep = counts >= max(threshold, min_count)
        quality = pair_quality(assignments, classes.starts)
        last = Pass(
            clusters=len(centroids),
            threshold=threshold,
            kept=int(keep.sum()),
            tasks_clustered=len(matched) / n_tasks,
            precision=quality.precision,
            match=quality.match,
            match_error=quality.match_error,
        )
        path.append(last)
        too_few = last.kept < ways.max()
        if too_few and not guard:
            raise MelaError(
                f"labeler.q: pass {len(path)} would leave {last.kept} of {last.clusters} clusters, fewer than the "
                f"{ways.max()} ways of task {classes.widest} ({len(matched)} of {n_tasks} tasks clustered); raise "
                "labeler.q, lower labeler.min_count, or turn labeler.guard on"
            )
        if last.match > best:
            best, worst = last.match, last.match - 2 * last.match_error
        if not guard or last.match >= worst:
            chosen = len(path) - 1
            found = moving.points.copy(), counts.copy()
        if too_few:
            break
        centroids, weights, counts = moving.points[keep], weights[keep], counts[keep]
        if keep.all():
            break
    if chosen == len(path) - 1 and not too_few:
        found = centroids, counts
    return Pruned(centroids=found[0], counts=found[1], path=path, chosen=chosen)


def _validate(classes: ClassMeans, n_clusters: int) -> None:
    if len(classes.means) < n_clusters:
        raise MelaError(
            f"labeler.n_clusters is {n_clusters}, but the tasks have only {len(classes.means)} classes in all; lower "
            "it, but not below the number of classes that you expect"
        )
    if classes.ways.max() > n_clusters:
        raise MelaError(
            f"labeler.n_clusters is {n_clusters}, but task {classes.widest} alone has {classes.ways.max()} classes; "
            "raise it to that number or more"
        )


def _initial_centroids(classes: ClassMeans, n_clusters: int, generator: np.random.Generator) -> Floats:
    tasks = generator.permutation(len(classes.ways))
    rows = [np.arange(classes.starts[task], classes.starts[task + 1]) for task in tasks]
    return classes.means[np.concatenate(rows)[:n_clusters]].copy()


def run_pass(
    means: Array,
    sizes: Ints,
    starts: Ints,
    order: Ints,
    centroids: Centroids,
    weights: Floats,
    counts: Ints,
    *,
    block_rows: int = BLOCK_ROWS,
) -> tuple[Ints, Ints]:
    """Run one pass of Algorithm 2 without its pruning.

    Parameters
    ----------
    means : float array (n, m)
        Task classes, numpy or torch.
    sizes : int64 (n,)
        Samples per task class.
    starts : int64 (n_tasks + 1,)
        Task t holds the rows ``starts[t]`` to ``starts[t + 1] - 1``.
    order : int64 (n_visits,)
        Tasks in the order of the visits.
    centroids : Centroids
        Moved in place.
    weights : float64 (n_clusters,)
        N_v of Eq. 13, added to in place.
    counts : int64 (n_clusters,)
        Tasks matched, added to in place.
    block_rows : int
        Rows scored at once; changes the time, never the result.

    Returns
    -------
    matched : int64 (n_matched,)
        Tasks whose classes all had different nearest centroids, in the order of the visits.
    assignments : int64 (n,)
        Nearest centroid of each task class when its task was visited; -1 for tasks not in `order`.
    """
    xp = centroids.xp
    matched, assignments = [], np.full(int(means.shape[0]), -1, dtype=np.int64)
    ways, local = np.diff(starts), isinstance(means, np.ndarray)
    for block in _blocks(order, starts, block_rows):
        rows = np.concatenate([np.arange(starts[task], starts[task + 1]) for task in block])
        samples = sizes[rows].astype(np.float64)
        points = means[xp.asarray(rows, device=device(means)), :]
        extended = extend(points)
        margins = centroids.margins(norms(points))
        scores = centroids.scores(extended)
        bounds = [0, *np.cumsum(ways[block]).tolist()]
        found_rows: list[int] = []
        for task, (start, end) in zip(block.tolist(), pairwise(bounds), strict=True):
            own = points[start:end, :]
            found = centroids.nearest(own, scores[start:end, :], margins[start:end])
            found_rows += found
            if len(set(found)) < len(found):
                continue
            where, new = np.array(found), samples[start:end]
            columns = where if local else xp.asarray(where, device=device(means))
            changed = centroids.move(columns, own, weights[where], new)
            weights[where] += new
            counts[where] += 1
            matched.append(task)
            if end < len(rows):
                scores[end:, columns] = extended[end:, :] @ changed.T
        assignments[rows] = found_rows
    return np.array(matched, dtype=np.int64), assignments


def _blocks(order: Ints, starts: Ints, block_rows: int) -> Iterator[Ints]:
    """Yield consecutive tasks of at most `block_rows` rows together, or a single task that has more."""
    first, rows = 0, 0
    for position, task in enumerate(order):
        ways = int(starts[task + 1] - starts[task])
        if rows and rows + ways > block_rows:
            yield order[first:position]
            first, rows = position, 0
        rows += ways
    if first < len(order):
        yield order[first:]
