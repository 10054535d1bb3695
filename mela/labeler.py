"""LearnLabeler: global labels for independently labelled tasks (Algorithm 2)."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from mela.class_means import ClassMeans
from mela.errors import MelaError
from mela.passes import Centroids, distinct, nearest, norms, run_pass

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Pass:
    """One pass over the tasks: clusters before it, the pruning threshold, clusters kept, share of tasks clustered."""

    clusters: int
    threshold: float
    kept: int
    tasks_clustered: float


@dataclass(frozen=True, kw_only=True)
class GlobalLabels:
    """What LearnLabeler finds.

    Attributes
    ----------
    centroids : float64 (n_clusters, m)
    counts : int64 (n_clusters,)
        Tasks matched to each cluster in the last pass (over all passes where counts are cumulative).
    assignments : int64 (n_classes,)
        Nearest centroid of each task class.
    clustered : bool (n_classes,)
        False where two classes of the task have the same nearest centroid; such tasks are left out of pre-training.
    path : list of Pass
    """

    centroids: Floats
    counts: Ints
    assignments: Ints
    clustered: npt.NDArray[np.bool_]
    path: list[Pass]

    @property
    def settled(self) -> bool:
        """Whether the last pass removed no cluster, so that `max_passes` did not cut the search short."""
        return self.path[-1].kept == self.path[-1].clusters

    def path_table(self) -> pd.DataFrame:
        """The passes as rows, counted from 1, with the share of tasks clustered in percent."""
        table = pd.DataFrame(self.path).rename_axis("pass").rename(lambda row: row + 1).reset_index()
        return table.assign(tasks_clustered=100 * table["tasks_clustered"])

    def sizes_table(self) -> pd.DataFrame:
        """Tasks matched to each cluster, largest first, beside the last threshold."""
        counts = np.sort(self.counts)[::-1]
        ranks = np.arange(1, len(counts) + 1)
        return pd.DataFrame({"rank": ranks, "tasks": counts, "threshold": self.path[-1].threshold})


def learn_labels(
    classes: ClassMeans,
    *,
    n_clusters: int,
    q: float,
    min_count: int = 1,
    cumulative_counts: bool = False,
    max_passes: int = 100,
    seed: int,
) -> GlobalLabels:
    r"""Cluster task classes under the local constraints and prune rare clusters until their number settles.

    Centroids start as the class means of random tasks. A pass visits the tasks in a seeded order: each class of a task
    goes to its nearest centroid (Eq. 12); unless two of them meet at one centroid, every matched centroid becomes the
    running mean of what it received (Eq. 13),

    .. math:: g_v \leftarrow \frac{N_v g_v + I \bar\psi}{N_v + I}, \qquad N_v \leftarrow N_v + I, \qquad N_v = 1
        \text{ at the start of a pass},

    at once, so that later tasks of the pass meet the moved centroid. Then clusters with
    ``count < max(mean(count) - q * sqrt(Var), min_count)`` are removed (Eq. 14-15), where count is in tasks and Var is
    that of a cluster which takes part in each matched task with probability p = ways / n_clusters: the sum of p (1 - p)
    over these tasks. Passes end when none is removed.

    Parameters
    ----------
    classes : ClassMeans
    n_clusters : int
        J, clusters to start from.
    q : float
        Tolerance of the pruning in standard deviations; a smaller one removes more.
    min_count : int
        Tasks that a cluster needs whatever the threshold, which is negative when there are few tasks.
    cumulative_counts : bool
        Do not reset N_v and the counts between passes, as the authors' code does; the paper resets.
    max_passes : int
    seed : int
        Of the initial tasks and the order of the visits.

    Raises
    ------
    MelaError
        Fewer task classes than `n_clusters`, fewer clusters than the ways of a task, or no task that was clustered.

    References
    ----------
    Wang, Pontil and Ciliberto, "The Role of Global Labels in Few-Shot Classification and How to Infer Them", 2021.
    """
    starts = classes.starts
    n_tasks, ways = len(starts) - 1, np.diff(starts)
    _validate(classes, n_clusters, ways)
    generator = np.random.default_rng(seed)
    centroids = _initial_centroids(classes, starts, n_clusters, generator)
    order = generator.permutation(n_tasks)
    radius = float(norms(classes.means).max())
    weights, counts, variance, path = np.ones(n_clusters), np.zeros(n_clusters, dtype=np.int64), 0.0, []
    for _ in range(max_passes):
        if not cumulative_counts:
            weights[:], counts[:], variance = 1, 0, 0.0
        moving = Centroids(centroids, radius)
        matched = run_pass(classes.means, classes.sizes, starts, order, moving, weights, counts)
        centroids = moving.points
        share = ways[matched] / len(centroids)
        variance += float((share * (1 - share)).sum())
        threshold = float(counts.mean() - q * np.sqrt(variance))
        keep = counts >= max(threshold, min_count)
        path.append(
            Pass(
                clusters=len(centroids),
                threshold=threshold,
                kept=int(keep.sum()),
                tasks_clustered=len(matched) / n_tasks,
            )
        )
        if not keep.any():
            raise MelaError(
                f"labeler.q: pass {len(path)} would remove all {len(keep)} clusters ({len(matched)} of {n_tasks} tasks "
                "clustered); raise labeler.q or lower labeler.min_count"
            )
        centroids, weights, counts = centroids[keep], weights[keep], counts[keep]
        if keep.all():
            break
    assignments, clustered = assign(classes, centroids)
    if not clustered.any():
        raise MelaError(
            f"labeler.q: expected tasks whose classes reach different clusters, found none ({len(centroids)} clusters "
            f"left after {len(path)} passes); raise labeler.q or labeler.n_clusters"
        )
    return GlobalLabels(centroids=centroids, counts=counts, assignments=assignments, clustered=clustered, path=path)


def assign(classes: ClassMeans, centroids: Floats) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Nearest centroid of each task class (n,), and whether its task's classes all have different ones (n,)."""
    found = nearest(classes.means, centroids)
    return found, distinct(found, classes.starts)


def label_images(found: GlobalLabels, image_ids: Ints, class_rows: Ints) -> tuple[GlobalLabels, Ints, Ints]:
    """One label per image: the cluster that most of its clustered task classes have, the smallest one at a tie.

    Parameters
    ----------
    found : GlobalLabels
    image_ids, class_rows : int64 (n_samples,)
        Each sample's image and task class (a row of the class means).

    Returns
    -------
    found : GlobalLabels
        The same clusters, renumbered: those that are the label of some image come first.
    image_ids, labels : int64 (n_labelled,)
        Images that occur in a clustered task, in rising order. The labels are 0 to n_labels - 1, and label v is
        centroid v of the renumbered clusters.
    """
    votes = np.stack([image_ids, found.assignments[class_rows]], axis=1)[found.clustered[class_rows]]
    pairs, counts = np.unique(votes, axis=0, return_counts=True)
    winners = pairs[np.lexsort((pairs[:, 1], -counts, pairs[:, 0]))]
    images, first = np.unique(winners[:, 0], return_index=True)
    used, labels = np.unique(winners[first, 1], return_inverse=True)
    order = np.concatenate([used, np.setdiff1d(np.arange(len(found.centroids)), used)])
    renumbered = replace(
        found,
        centroids=found.centroids[order],
        counts=found.counts[order],
        assignments=np.argsort(order)[found.assignments],
    )
    return renumbered, images, labels.astype(np.int64)


def _validate(classes: ClassMeans, n_clusters: int, ways: Ints) -> None:
    if len(classes.means) < n_clusters:
        raise MelaError(
            f"labeler.n_clusters: expected at most {len(classes.means)}, the number of task classes, got {n_clusters}"
        )
    if ways.max() > n_clusters:
        task = classes.task_ids[classes.starts[int(ways.argmax())]]
        raise MelaError(
            f"labeler.n_clusters: expected at least {ways.max()}, the ways of task {task}, got {n_clusters}"
        )


def _initial_centroids(classes: ClassMeans, starts: Ints, n_clusters: int, generator: np.random.Generator) -> Floats:
    rows = [np.arange(starts[task], starts[task + 1]) for task in generator.permutation(len(starts) - 1)]
    return classes.means[np.concatenate(rows)[:n_clusters]].copy()
