"""LearnLabeler as a scikit-learn estimator: global labels for independently labelled tasks."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.assignment import Collisions, assign_tasks, settle_collisions
from mela.labeling.centroids import nearest
from mela.labeling.clusters import weighted_sums
from mela.labeling.memberships import Memberships
from mela.labeling.merging import Merged, left_out, merge_classes
from mela.labeling.name_checks import require_one_type
from mela.labeling.pair_quality import pair_quality
from mela.labeling.pruning import Pass, Pruned, prune_clusters
from mela.labeling.size_prior import evenness
from mela.labeling.space import Space, sample_space
from mela.labeling.task_classes import ClassMeans, TaskSamples, class_means, group_samples


def _is_soft(labeler: "LearnLabeler") -> bool:
    return labeler.soft


class LearnLabeler(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    r"""Infer the global classes of tasks that were labelled independently of each other.

    In each task samples carry local labels, which mean nothing outside of it. Samples of one local label belong
    together, those of different ones do not; which labels of different tasks are the same class is what is inferred.

    With ``merge=True`` task classes are merged as long as it is more probable than not that they are one class, given
    how far apart they lie, how much the samples of one differ, and which clusters met in a task
    (`mela.labeling.merging.merge_classes`). The number of classes follows, and a class may be as rare as it likes. With
    ``merge=False`` this is Algorithm 2 of the paper: clusters are matched task by task,

    .. math:: v^*_j = \arg\min_v |g_v - \bar\psi_j|^2, \qquad
        g_v \leftarrow \frac{N_v g_v + I \bar\psi_j}{N_v + I} \quad (12, 13)

    for the class means :math:`\bar\psi_j` of I samples of a task none of whose classes collide, and those rarer than
    q standard deviations below the mean are pruned (14, 15) until none is (`mela.labeling.pruning.prune_clusters`).
    Then each task class takes its nearest centroid.

    Parameters
    ----------
    n_clusters : int, default=300
        Pruning only: J, the clusters that it starts from.
    q : float, default=6.5
        Pruning only: a cluster is removed if it is this many standard deviations rarer than expected. Merging has no
        such parameter.
    merge : bool, default=True
        Merge task classes; False is the paper's algorithm.
    collisions : {"drop", "assign"}, default="drop"
        What becomes of a task two of whose classes have the same nearest centroid: left without labels (the paper), or
        labelled by the best matching of its classes with different centroids.
    guard : bool, default=True
        Pruning only: go back to an earlier pass where pruning ran away; see `mela.labeling.pruning.prune_clusters`.
    min_count : int, default=1
        Tasks that a cluster needs. After merging, the task classes of rarer clusters go to their nearest other one,
        and tasks two of whose classes then have the same one are left out, unless `collisions` is "assign".
    cumulative_weights : bool, default=False
        Pruning only: keep the weights of the running means between passes, as the authors' code does.
    max_passes : int, default=100
        Pruning only.
    soft : bool, default=False
        Also tell how much each sample belongs to each cluster, and enable `predict_proba`.
    random_state : int, RandomState or None, default=0
        Of the first clusters and the order of the visits. Merging up to 5,000 task classes has nothing random.

    Attributes
    ----------
    labels_ : int64 (n_samples,)
        Cluster of each sample, -1 where its task was not clustered.
    cluster_centers_ : float64 (n_clusters, n_features)
    counts_ : int64 (n_clusters,)
        Tasks in which a cluster was found, before tasks were assigned for the last time.
    n_iter_ : int
        Passes, or merges.
    path_ : list of mela.labeling.pruning.Pass
        Clusters, threshold and share of tasks clustered of each pass; empty if merged.
    chosen_pass_ : int or None
        The pass, from 0, that the clusters come from; None if merged.
    merged_ : mela.labeling.merging.Merged or None
        Merging only: the space in which distances were taken, the odds of the merges.
    pruned_ : mela.labeling.pruning.Pruned or None
        Pruning only: whether it settled, and whether it ran away.
    threshold_ : float
        Tasks below which a cluster was removed last; `min_count` if merged.
    consistency_ : float or None
        Merging only: share of the labelled task classes that would reach their own cluster had they not been part of
        it. A value far below 1 says that the labels rest on thin evidence.
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

    References
    ----------
    Wang, Pontil and Ciliberto, "The Role of Global Labels in Few-Shot Classification and How to Infer Them", 2021.

    Examples
    --------
    Forty tasks, each with three of six classes under local labels 0, 1, 2:

    >>> import numpy as np
    >>> from mela.labeling.labeler import LearnLabeler
    >>> rng = np.random.default_rng(1)
    >>> centers = rng.normal(size=(6, 4)) * 4
    >>> truth = np.concatenate([rng.permutation(6)[:3] for _ in range(40)])
    >>> X = centers[truth].repeat(5, axis=0) + rng.normal(size=(600, 4))
    >>> y = np.tile([0, 1, 2], 40).repeat(5)
    >>> groups = np.arange(40).repeat(15)
    >>> labeler = LearnLabeler().fit(X, y, groups)
    >>> len(labeler.cluster_centers_)
    6
    >>> from sklearn.metrics import adjusted_rand_score
    >>> adjusted_rand_score(truth.repeat(5), labeler.labels_)
    1.0
    """

    labels_: Ints
    cluster_centers_: Floats
    counts_: Ints
    path_: list[Pass]
    chosen_pass_: int | None
    merged_: Merged | None
    pruned_: Pruned | None
    consistency_: float | None
    n_single_tasks_: int
    space_: Space | None
    memberships_: Memberships | None
    class_weights_: csr_array
    soft_labels_: csr_array

    def __init__(
        self,
        n_clusters: int = 300,
        q: float = 6.5,
        *,
        merge: bool = True,
        collisions: Collisions = "drop",
        guard: bool = True,
        min_count: int = 1,
        cumulative_weights: bool = False,
        max_passes: int = 100,
        soft: bool = False,
        random_state: Any = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.q = q
        self.merge = merge
        self.collisions = collisions
        self.guard = guard
        self.min_count = min_count
        self.cumulative_weights = cumulative_weights
        self.max_passes = max_passes
        self.soft = soft
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Infer global labels.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
        y : array-like (n_samples,)
            Local labels, of any kind that can be sorted.
        groups : array-like (n_samples,)
            Task of each sample. Tasks may have different ways and shots, and some may have a single class.

        Raises
        ------
        ValueError
            Lengths differ, a value is not finite, no task has two classes, a parameter is out of its range, or there
            are fewer clusters or task classes than a task has ways. For merging: every task class has one sample.
        """
        return self.fit_tasks(self._samples(X, y, groups, reset=True))

    def fit_predict(self, X: Any, y: Any = None, groups: Any = None) -> Ints:
        """Infer global labels and return `labels_`."""
        return self.fit(X, y, groups).labels_

    def fit_tasks(self, samples: TaskSamples) -> Self:
        """Infer global labels of samples that may share feature rows, as images that occur in many tasks do."""
        self._check_parameters()
        self.n_features_in_ = samples.features.shape[1]
        classes = class_means(samples)
        self.n_single_tasks_ = _count_single(classes)
        self.task_classes_, self.class_size_ = samples, float(classes.sizes.mean())
        if self.merge:
            self._merge(samples, classes)
        else:
            self._prune(classes)
        points = self.merged_.points if self.merged_ else classes.means
        centers = self._transform(self.cluster_centers_)
        found = nearest(points, centers)
        self.class_clusters_, self.class_labels_ = settle_collisions(
            found, points, classes.starts, centers, self.collisions
        )
        if (self.class_labels_ < 0).all():
            advice = "" if self.merge else "raise labeler.q, or "
            raise MelaError(
                f"labeler: expected tasks whose classes reach different clusters, found none of {len(classes.ways)} "
                f"({len(centers)} clusters); {advice}set labeler.collisions to assign"
            )
        if self.merge:
            # a class that is judged by a center which it helped to make looks better than it is
            found = left_out(points, classes.sizes, self.class_labels_)
            used = self.class_labels_ >= 0
            self.consistency_ = float((found == self.class_labels_)[used].mean())
        self.pair_quality_ = pair_quality(found, classes.starts)
        self.labels_ = samples.spread(self.class_labels_)
        self._weigh(samples, classes)
        return self

    def predict(self, X: Any, y: Any = None, groups: Any = None) -> Ints:
        """Cluster of each sample (n_samples,).

        With `y` and `groups` as in `fit`, tasks are labelled under their local constraints (-1 where a task collides
        and `collisions` is "drop"). Without both, each sample takes its nearest centroid.
        """
        check_is_fitted(self)
        if y is None and groups is None:
            X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
            return nearest(self._transform(X.astype(np.float64)), self._transform(self.cluster_centers_))
        samples, _, found = self._assigned(X, y, groups)
        return samples.spread(found)

    @available_if(_is_soft)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, y: Any = None, groups: Any = None) -> Floats:
        """Probability of each cluster for each sample (n_samples, n_clusters); requires ``soft=True``.

        With `y` and `groups` it is that of the sample's task class, given the clusters of the other classes of its
        task, and 0 throughout where `predict` gives -1. Without both, it is that of each sample by itself.

        Raises
        ------
        ValueError
            As `predict`; no task class that was fitted has two samples, so that nothing says how much they differ.
        """
        check_is_fitted(self)
        if self.memberships_ is None or self.space_ is None:
            raise MelaError(
                "predict_proba: expected a fit with soft=True to some task classes of two or more samples, which say "
                "how much samples of one class differ, got none; fit again"
            )
        if y is None and groups is None:
            X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
            return self.memberships_.of_samples(self.space_.transform(X.astype(np.float64)), 1 / self.class_size_)
        samples, classes, found = self._assigned(X, y, groups)
        weights = self.memberships_.of_tasks(
            self.space_.transform(classes.means), classes.sizes / self.class_size_, found, classes.starts, members=False
        )
        return weights[samples.spread(np.arange(len(found)))].toarray()

    def _assigned(self, X: Any, y: Any, groups: Any) -> tuple[TaskSamples, ClassMeans, Ints]:
        """New tasks, their class means, and the cluster of each task class, -1 where a task was dropped."""
        samples = self._samples(X, y, groups, reset=False)
        classes = class_means(samples)
        k = len(self.cluster_centers_)
        if classes.ways.max() > k:
            raise MelaError(
                f"task {classes.widest}: expected at most {k} classes, the clusters found, got {classes.ways.max()}"
            )
        centers = self._transform(self.cluster_centers_)
        _, found = assign_tasks(self._transform(classes.means), classes.starts, centers, self.collisions)
        return samples, classes, found

    def _weigh(self, samples: TaskSamples, classes: ClassMeans) -> None:
        self.space_, self.memberships_ = None, None
        for name in ("class_weights_", "soft_labels_"):
            self.__dict__.pop(name, None)
        if not self.soft:
            return
        clusters, k = self.class_labels_, len(self.cluster_centers_)
        if self.merged_ or (classes.sizes > 1).any():
            self.space_ = self.merged_.space if self.merged_ else sample_space(samples, classes)
            points, weights = self.space_.transform(classes.means), classes.sizes / classes.sizes.mean()
            gamma = evenness(np.unique(clusters[clusters >= 0], return_counts=True)[1])
            self.memberships_ = Memberships.of(points, weights, clusters, k, self.space_.between, gamma)
            self.class_weights_ = self.memberships_.of_tasks(points, weights, clusters, classes.starts, members=True)
        else:
            rows = np.flatnonzero(clusters >= 0)
            self.class_weights_ = csr_array((np.ones(len(rows)), (rows, clusters[rows])), shape=(len(clusters), k))
        self.soft_labels_ = self.class_weights_[samples.spread(np.arange(len(clusters)))]

    def _prune(self, classes: ClassMeans) -> None:
        seed = self.random_state
        if not isinstance(seed, (int, np.integer)):
            seed = check_random_state(seed).randint(2**31)
        pruned = prune_clusters(
            classes,
            n_clusters=self.n_clusters,
            q=self.q,
            min_count=self.min_count,
            cumulative_weights=self.cumulative_weights,
            guard=self.guard,
            max_passes=self.max_passes,
            seed=int(seed),
        )
        self.cluster_centers_, self.counts_, self.path_ = pruned.centroids, pruned.counts, pruned.path
        self.n_iter_, self.chosen_pass_, self.merged_, self.pruned_ = len(pruned.path), pruned.chosen, None, pruned
        self.threshold_, self.consistency_ = pruned.path[pruned.chosen].threshold, None

    def _merge(self, samples: TaskSamples, classes: ClassMeans) -> None:
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
        self.path_, self.chosen_pass_, self.merged_, self.pruned_ = [], None, merged, None
        self.n_iter_, self.threshold_ = sum(done.kept for done in merged.rounds), float(self.min_count)

    def _transform(self, points: Floats) -> Floats:
        return self.merged_.space.transform(points) if self.merged_ else points

    def _samples(self, X: Any, y: Any, groups: Any, *, reset: bool) -> TaskSamples:
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_all_finite=False, reset=reset)
        for name, value in [("y", y), ("groups", groups)]:
            if value is None:
                what = "the local label" if name == "y" else "the task"
                raise MelaError(f"{name}: expected {what} of each sample, got None; y and groups are both required")
        require_one_type(groups, "tasks")
        require_one_type(y, "local labels")
        y, groups = column_or_1d(y), column_or_1d(groups)
        if not len(X) == len(y) == len(groups):
            raise MelaError(f"X, y, groups: expected the same length, got {len(X)}, {len(y)}, {len(groups)}")
        finite = np.isfinite(X).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            column = int(np.argmin(np.isfinite(X[row])))
            what = "NaN" if np.isnan(X[row, column]) else "infinity"
            raise MelaError(
                f"X: expected finite values, got {what} in row {row}, column {column} (task {groups[row]}, local label "
                f"{y[row]}); {(~finite).sum()} of {len(X)} rows are not finite"
            )
        return group_samples(X, np.arange(len(X)), groups, y)

    def _check_parameters(self) -> None:
        # what merging does not read is not judged either
        for name in ["min_count"] if self.merge else ["min_count", "n_clusters", "max_passes"]:
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise MelaError(f"labeler.{name}: expected an integer of at least 1, got {value!r}")
        if not self.merge and not (isinstance(self.q, Real) and 0 <= self.q < np.inf):
            raise MelaError(f"labeler.q: expected a finite number of at least 0, got {self.q!r}")
        for name in ("merge", "guard", "cumulative_weights", "soft"):
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise MelaError(f"labeler.{name}: expected True or False, got {value!r}")
        try:
            check_random_state(self.random_state)
        except ValueError:
            raise MelaError(
                f"labeler.random_state: expected an integer from 0 to {2**32 - 1}, a RandomState or None, got "
                f"{self.random_state!r}"
            ) from None
        if self.collisions not in ("drop", "assign"):
            raise MelaError(f"labeler.collisions: expected 'drop' or 'assign', got {self.collisions!r}")


def _count_single(classes: ClassMeans) -> int:
    """Return the number of tasks of one class; some other task must have two or more."""
    single = int((classes.ways < 2).sum())
    if single == len(classes.ways):
        raise MelaError(
            f"groups: expected a task of two classes or more, got {single} tasks of one class each, which do not say "
            "what differs; give tasks with several local labels"
        )
    return single
