"""Define what labelers of tasks share: clusters of given tasks' classes, and labels of new tasks."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics import euclidean_distances
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.assignment import Collisions, assign_tasks, settle_collisions
from mela.labeling.centroids import nearest
from mela.labeling.links import Links, given_links
from mela.labeling.memberships import Memberships, MoreOdds
from mela.labeling.name_checks import require_one_type
from mela.labeling.pair_quality import PairQuality, pair_quality
from mela.labeling.size_prior import evenness
from mela.labeling.space import Space, sample_space
from mela.labeling.task_classes import ClassMeans, TaskSamples, class_means, group_samples
from mela.labeling.wrong_labels import find_wrong_labels


def _is_soft(labeler: "TaskLabeler") -> bool:
    return labeler.soft


class TaskLabeler(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Infer the global classes of tasks that were labelled independently of each other.

    In each task samples carry local labels, which mean nothing outside of it. Samples of one local label belong
    together, those of different ones do not. Inferred is which labels of different tasks are the same class.
    `mela.LearnLabeler` and `mela.MergeLabeler` define how, and add parameters and attributes of their own.

    Attributes
    ----------
    collisions : {"drop", "assign"}, default="drop"
        What becomes of a task two of whose classes have the same nearest centroid: left without labels (the paper), or
        labelled by the best matching of its classes with different centroids.
    soft : bool, default=False
        Also tell how much each sample belongs to each cluster, and enable `predict_proba`.
    labels_ : int64 (n_samples,)
        Cluster of each sample, -1 where its task was not clustered.
    cluster_centers_ : float64 (n_clusters, n_features)
    counts_ : int64 (n_clusters,)
        Tasks in which a cluster was found, before the last assignment of tasks.
    pair_quality_ : mela.labeling.pair_quality.PairQuality
        Quality of the final clusters, judged by the tasks alone. Where people differ, it is that of the clusters before
        classes of one task are told apart, since the estimates hold for no others.
    n_single_tasks_ : int
        Tasks of one class. They say nothing about which classes differ, but are labelled like the others.
    task_classes_ : mela.labeling.task_classes.TaskSamples
        Samples, tasks and local labels of the task classes.
    class_clusters_, class_labels_ : int64 (n_task_classes,)
        Nearest cluster of each task class, and the same with -1 where the task was not clustered.
    space_ : mela.labeling.space.Space or None
    class_size_ : float
        Samples of a task class, on average.
    memberships_ : mela.labeling.memberships.Memberships or None
        `soft` only: the model behind the weights; None where no task class has two samples, and all weights are 1.
    class_weights_ : scipy.sparse.csr_array (n_task_classes, n_clusters)
        `soft` only: posterior probability of each cluster for a task class, given where all others went
        (`mela.labeling.memberships`), and what people call it if names count. Rows sum to 1, or to 0 where the task was
        not clustered.
    soft_labels_ : scipy.sparse.csr_array (n_samples, n_clusters)
        `soft` only: the same for each sample, the weights beside `labels_`.
    n_features_in_ : int
    """

    collisions: Collisions
    min_count: int
    soft: bool
    random_state: Any
    cluster_centers_: Floats
    counts_: Ints
    n_iter_: int
    space_: Space | None
    memberships_: Memberships | None
    class_weights_: csr_array
    soft_labels_: csr_array

    # clusters (n_task_classes,) that are known, -1 for those of the nearest centers; None where all are such
    _own: Ints | None = None

    @abstractmethod
    def _find(self, samples: TaskSamples, classes: ClassMeans, links: Links | None) -> Floats:
        """Find the clusters, set the attributes that describe them, and return the points of the task classes."""

    @property
    def learned_labels(self) -> Ints:
        """Cluster of each task class (n_task_classes,) for a network to learn, -1 where it has none."""
        return self.class_labels_

    def _clusters(self, points: Floats, centers: Floats) -> Ints:
        """Return the cluster (n,) of each task class that was fitted."""
        if self._own is not None and (self._own >= 0).all():
            return self._own
        found = nearest(points, centers)
        return found if self._own is None else np.where(self._own >= 0, self._own, found)

    def _quality(self, found: Ints, points: Floats, classes: ClassMeans) -> PairQuality:
        """Return the quality of the labels, given the nearest cluster of each task class."""
        return pair_quality(found, classes.starts)

    def _project(self, points: Floats) -> Floats:
        """Return features as points of the space in which distances are taken."""
        return points

    def _means(self, classes: ClassMeans) -> Floats:
        """Return the means of new task classes without what tells nothing of their classes."""
        return classes.means

    def _fitted_means(self, classes: ClassMeans) -> Floats:
        """Return the same of those that were fitted, of whom more may be known."""
        return classes.means

    def _model_space(self, samples: TaskSamples, classes: ClassMeans) -> Space | None:
        """Return the space of the model behind soft labels; None where no task class has two samples."""
        return sample_space(samples, classes) if (classes.sizes > 1).any() else None

    def _told_by_names(self, clusters: Ints) -> MoreOdds | None:
        """Return the log odds that names give to the clusters (n,) of fitted task classes, or None without names."""
        return None

    def _told_by_words(self, words: Sequence[str], k: int) -> MoreOdds | None:
        """Return the log odds that k clusters get by what new people call their labels (n,), or None without names."""
        return None

    def fit(self, X: Any, y: Any = None, groups: Any = None, *, must_link: Any = None, cannot_link: Any = None) -> Self:
        """Infer global labels.

        Parameters
        ----------
        X : array-like (n_samples, n_features)
        y : array-like (n_samples,)
            Local labels, of any kind that can be sorted.
        groups : array-like (n_samples,)
            Task of each sample. Tasks may have different ways and shots, and some may have a single class.
        must_link, cannot_link : sequence of ((task, label), (task, label)), optional
            Local labels that somebody knows to be one class, or not to be (`mela.labeling.links`). This is kept to
            exactly, and their clusters are joined or divided accordingly. `predict` knows nothing of them.

        Raises
        ------
        ValueError
            Lengths differ, a value is not finite, no task has two classes, a parameter is out of its range, or there
            are fewer clusters or task classes than a task has ways. For merging: every task class has one sample.
            A link names a label that is not there, or links contradict each other.
        """
        samples = self._samples(X, y, groups, reset=True)
        return self.fit_tasks(samples, given_links(samples, must_link, cannot_link))

    def fit_predict(self, X: Any, y: Any = None, groups: Any = None, **known: Any) -> Ints:
        """Infer global labels by `fit`, which may take more than these, and return `labels_`."""
        return self.fit(X, y, groups, **known).labels_

    def fit_tasks(self, samples: TaskSamples, links: Links | None = None) -> Self:
        """Infer global labels of samples that may share feature rows, as images that occur in many tasks do."""
        self._check_parameters()
        self.n_features_in_ = samples.features.shape[1]
        classes = class_means(samples)
        self.n_single_tasks_ = _count_single(classes)
        self.task_classes_, self.class_size_ = samples, float(classes.sizes.mean())
        points = self._find(samples, classes, links)
        centers = self._project(self.cluster_centers_)
        found = self._clusters(points, centers)
        self.class_clusters_, self.class_labels_ = settle_collisions(
            found, points, classes.starts, centers, self.collisions
        )
        if (self.class_labels_ < 0).all():
            raise MelaError(
                f"{self._block}: in each of the {len(classes.ways)} tasks, two classes have the same nearest of "
                f"{len(centers)} clusters; {self._advice}set {self._block}.collisions to assign"
            )
        self.pair_quality_ = self._quality(found, points, classes)
        self.labels_ = samples.spread(self.class_labels_)
        self._weigh(samples, classes, links)
        return self

    def predict(self, X: Any, y: Any = None, groups: Any = None) -> Ints:
        """Return the cluster of each sample (n_samples,).

        With `y` and `groups` as in `fit`, tasks are labelled under their local constraints (-1 where a task collides
        and `collisions` is "drop"). If neither is given, each sample takes its nearest centroid.

        Raises
        ------
        ValueError
            As `fit`; one of `y` and `groups` is missing.
        """
        check_is_fitted(self)
        if y is None and groups is None:
            return nearest(self._project(self._features(X)), self._project(self.cluster_centers_))
        samples, _, found = self._assigned(X, y, groups)
        return samples.spread(found)

    def transform(self, X: Any) -> Floats:
        """Return each sample's distance to each cluster (n_samples, n_clusters); `predict` takes the nearest."""
        check_is_fitted(self)
        return euclidean_distances(self._project(self._features(X)), self._project(self.cluster_centers_))

    @available_if(_is_soft)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, y: Any = None, groups: Any = None) -> Floats:
        """Return the probability of each cluster for each sample (n_samples, n_clusters); requires ``soft=True``.

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
                "predict_proba: this labeler was not fitted with soft=True, or each of its task classes has a single "
                "sample; fit again with soft=True, and give two samples of some task classes"
            )
        if y is None and groups is None:
            return self.memberships_.of_samples(self.space_.transform(self._features(X)), 1 / self.class_size_)
        samples, classes, found = self._assigned(X, y, groups)
        weights = self.memberships_.of_tasks(
            self.space_.transform(self._means(classes)),
            classes.sizes / self.class_size_,
            found,
            classes.starts,
            members=False,
        )
        return weights[samples.spread(np.arange(len(found)))].toarray()

    def wrong_label_proba(self) -> Floats:
        """Return the probability that each sample belongs to another class of its task than its label says.

        Of the samples that were given last, in their order: float64 (n_samples,). See `mela.labeling.wrong_labels`.

        Raises
        ------
        ValueError
            The labeler was read from a file, which holds no samples.
        """
        check_is_fitted(self)
        if not hasattr(self, "task_classes_"):
            raise MelaError(
                "wrong_label_proba: expected the samples of the fit, got a labeler from a file; fit it here"
            )
        found = find_wrong_labels(self.task_classes_, self.class_labels_)
        return self.task_classes_.in_given_order(found.probabilities)

    def _features(self, X: Any) -> Floats:
        """Return samples in the type of the computation; raise ValueError if they are unlike those of the fit."""
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False).astype(np.float64)

    def _assigned(self, X: Any, y: Any, groups: Any) -> tuple[TaskSamples, ClassMeans, Ints]:
        """Return new tasks, their class means, and the cluster of each task class, -1 where a task was dropped."""
        samples = self._samples(X, y, groups, reset=False)
        classes = class_means(samples)
        k = len(self.cluster_centers_)
        if classes.ways.max() > k:
            raise MelaError(
                f"task {classes.widest} has {classes.ways.max()} classes, but only {k} clusters were found; split the "
                "task, or fit the labeler to it too"
            )
        centers = self._project(self.cluster_centers_)
        _, found = assign_tasks(self._project(self._means(classes)), classes.starts, centers, self.collisions)
        return samples, classes, found

    def _weigh(self, samples: TaskSamples, classes: ClassMeans, links: Links | None) -> None:
        self.space_, self.memberships_ = None, None
        for name in ("class_weights_", "soft_labels_"):
            self.__dict__.pop(name, None)
        if not self.soft:
            return
        clusters, k = self.class_labels_, len(self.cluster_centers_)
        self.space_ = self._model_space(samples, classes)
        if self.space_ is not None:
            points, weights, self.memberships_ = self._class_model(classes, self.space_)
            more = self._told_by_names(clusters)
            self.class_weights_ = self.memberships_.of_tasks(
                points, weights, clusters, classes.starts, members=True, more=more
            )
        else:
            rows = np.flatnonzero(clusters >= 0)
            self.class_weights_ = csr_array((np.ones(len(rows)), (rows, clusters[rows])), shape=(len(clusters), k))
        if links is not None:
            # of these a person is sure
            told = np.flatnonzero(links.named & (clusters >= 0))
            sure = csr_array((np.ones(len(told)), (told, clusters[told])), shape=(len(clusters), k))
            self.class_weights_ = csr_array(self.class_weights_.multiply(~links.named[:, None]) + sure)
        self.soft_labels_ = self.class_weights_[samples.spread(np.arange(len(clusters)))]

    def _class_model(self, classes: ClassMeans, space: Space) -> tuple[Floats, Floats, Memberships]:
        """Return the points of the fitted task classes, their weights, and the model of the clusters that they have."""
        clusters, weights = self.class_labels_, classes.sizes / classes.sizes.mean()
        points = space.transform(self._fitted_means(classes))
        gamma = evenness(np.unique(clusters[clusters >= 0], return_counts=True)[1])
        k = len(self.cluster_centers_)
        return points, weights, Memberships.of(points, weights, clusters, k, space.between, gamma)

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
            raise MelaError(
                f"X, y and groups have {len(X)}, {len(y)} and {len(groups)} entries; give one local label and one task "
                "for each row of X"
            )
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

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    # of parameters, by which errors call them
    _block: ClassVar[str]
    # what else helps where no task could be labelled
    _advice = ""

    def _check_parameters(self) -> None:
        self._require_counts("min_count")
        self._require_flags("soft")
        try:
            check_random_state(self.random_state)
        except ValueError:
            raise MelaError(
                f"{self._block}.random_state: expected an integer from 0 to {2**32 - 1}, a RandomState or None, got "
                f"{self.random_state!r}"
            ) from None
        if self.collisions not in ("drop", "assign"):
            raise MelaError(f"{self._block}.collisions: expected 'drop' or 'assign', got {self.collisions!r}")

    def _require_counts(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise MelaError(f"{self._block}.{name}: expected an integer of at least 1, got {value!r}")

    def _require_flags(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise MelaError(f"{self._block}.{name}: expected True or False, got {value!r}")


def _count_single(classes: ClassMeans) -> int:
    """Return the number of tasks of one class; some other task must have two or more."""
    single = int((classes.ways < 2).sum())
    if single == len(classes.ways):
        raise MelaError(
            f"groups: all {single} tasks have one class, so nothing tells classes apart; give tasks with several "
            "local labels"
        )
    return single
