"""MergeLabeler: task classes are merged where they are probably one class, as a scikit-learn estimator."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.assignment import Collisions
from mela.labeling.clusters import weighted_sums
from mela.labeling.merging import Merged, left_out, merge_classes
from mela.labeling.space import Space
from mela.labeling.task_classes import ClassMeans, TaskSamples
from mela.labeling.task_labeler import TaskLabeler


class MergeLabeler(TaskLabeler):
    """Infer the global classes of independently labelled tasks by merging the classes of tasks.

    Task classes are merged as long as it is more probable than not that they are one class, given how far apart they
    lie, how much the samples of one differ, and which clusters met in a task (`mela.labeling.merging.merge_classes`).
    The number of classes follows, and a class may be as rare as it likes.

    Parameters
    ----------
    collisions : {"drop", "assign"}, default="drop"
        What becomes of a task two of whose classes have the same nearest centroid: left without labels (the paper), or
        labelled by the best matching of its classes with different centroids.
    min_count : int, default=1
        Tasks that a cluster needs. The task classes of rarer clusters go to their nearest other one, and tasks two of
        whose classes then have the same one are left out, unless `collisions` is "assign".
    soft : bool, default=False
        Also tell how much each sample belongs to each cluster, and enable `predict_proba`.
    random_state : int, RandomState or None, default=0
        Of the fragments that merging more than 5,000 task classes starts from; with fewer nothing is random.

    Attributes
    ----------
    labels_ : int64 (n_samples,)
        Cluster of each sample, -1 where its task was not clustered.
    cluster_centers_ : float64 (n_clusters, n_features)
    counts_ : int64 (n_clusters,)
        Tasks in which a cluster was found, before tasks were assigned for the last time.
    n_iter_ : int
        Merges.
    merged_ : mela.labeling.merging.Merged
        The space in which distances were taken, and the odds of the merges.
    consistency_ : float
        Share of the labelled task classes that would reach their own cluster had they not been part of it. A value far
        below 1 says that the labels rest on thin evidence.
    pair_quality_ : mela.labeling.pair_quality.PairQuality
        How good the final clusters are, judged by the tasks alone.
    n_single_tasks_ : int
        Tasks of one class. They say nothing about which classes differ, but are labelled like the others.
    task_classes_ : mela.labeling.task_classes.TaskSamples
        Which samples, tasks and local labels the task classes stand for.
    class_clusters_, class_labels_ : int64 (n_task_classes,)
        Nearest cluster of each task class, and the same with -1 where the task was not clustered.
    space_ : mela.labeling.space.Space or None
    class_size_ : float
        Samples of a task class, on average.
    memberships_ : mela.labeling.memberships.Memberships or None
        `soft` only: the model behind the weights; None where no task class has two samples, and all weights are 1.
    class_weights_ : scipy.sparse.csr_array (n_task_classes, n_clusters)
        `soft` only: posterior probability of each cluster for a task class, given where all others went
        (`mela.labeling.memberships`). Rows sum to 1, or to 0 where the task was not clustered.
    soft_labels_ : scipy.sparse.csr_array (n_samples, n_clusters)
        `soft` only: the same for each sample, the weights beside `labels_`.
    n_features_in_ : int

    Examples
    --------
    Forty tasks, each with three of six classes under local labels 0, 1, 2:

    >>> import numpy as np
    >>> from mela import MergeLabeler
    >>> rng = np.random.default_rng(1)
    >>> centers = rng.normal(size=(6, 4)) * 4
    >>> truth = np.concatenate([rng.permutation(6)[:3] for _ in range(40)])
    >>> X = centers[truth].repeat(5, axis=0) + rng.normal(size=(600, 4))
    >>> y = np.tile([0, 1, 2], 40).repeat(5)
    >>> groups = np.arange(40).repeat(15)
    >>> labeler = MergeLabeler().fit(X, y, groups)
    >>> len(labeler.cluster_centers_)
    6
    >>> from sklearn.metrics import adjusted_rand_score
    >>> adjusted_rand_score(truth.repeat(5), labeler.labels_)
    1.0
    """

    merged_: Merged
    consistency_: float

    def __init__(
        self, *, collisions: Collisions = "drop", min_count: int = 1, soft: bool = False, random_state: Any = 0
    ) -> None:
        self.collisions = collisions
        self.min_count = min_count
        self.soft = soft
        self.random_state = random_state

    def _find(self, samples: TaskSamples, classes: ClassMeans) -> Floats:
        merged = merge_classes(samples, classes, seed=check_random_state(self.random_state).randint(2**31))
        counts = np.bincount(merged.assignments[merged.assignments >= 0]).astype(np.int64)
        keep = counts >= self.min_count
        if keep.sum() < classes.ways.max():
            rare = (
                f", {keep.sum()} of them in labeler.min_count={self.min_count} tasks or more"
                if self.min_count > 1
                else ""
            )
            advice = "lower labeler.min_count, " if rare else ""
            raise MelaError(
                f"labeler.merge: found {len(counts)} classes{rare}, fewer than the {classes.ways.max()} ways of task "
                f"{classes.widest}; {advice}train the embedding longer, give more samples per class, or set "
                "labeler.merge to false"
            )
        weights, sums = weighted_sums(merged.assignments, classes.means, classes.sizes)
        self.cluster_centers_, self.counts_ = (sums / weights[:, None])[keep], counts[keep]
        self.merged_, self.n_iter_ = merged, sum(done.kept for done in merged.rounds)
        return merged.points

    def _judged(self, found: Ints, points: Floats, classes: ClassMeans) -> Ints:
        # a class that is judged by a center which it helped to make looks better than it is
        found = left_out(points, classes.sizes, self.class_labels_)
        used = self.class_labels_ >= 0
        self.consistency_ = float((found == self.class_labels_)[used].mean())
        return found

    def _project(self, points: Floats) -> Floats:
        return self.merged_.space.transform(points)

    def _model_space(self, samples: TaskSamples, classes: ClassMeans) -> Space | None:
        return self.merged_.space
