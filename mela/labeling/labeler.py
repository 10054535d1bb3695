"""LearnLabeler: Algorithm 2 of the paper as a scikit-learn estimator."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mela.data.array_types import Floats
from mela.errors import MelaError
from mela.labeling.assignment import Collisions
from mela.labeling.pruning import Pass, Pruned, prune_clusters
from mela.labeling.task_classes import ClassMeans, TaskSamples
from mela.labeling.task_labeler import TaskLabeler


class LearnLabeler(TaskLabeler):
    r"""Infer the global classes of independently labelled tasks by pruning clusters: Algorithm 2 of the paper.

    Clusters are matched task by task,

    .. math:: v^*_j = \arg\min_v |g_v - \bar\psi_j|^2, \qquad
        g_v \leftarrow \frac{N_v g_v + I \bar\psi_j}{N_v + I} \quad (12, 13)

    for the class means :math:`\bar\psi_j` of I samples of a task none of whose classes collide, and those rarer than
    q standard deviations below the mean are pruned (14, 15) until none is (`mela.labeling.pruning.prune_clusters`).
    Then each task class takes its nearest centroid. `MergeLabeler` needs neither n_clusters nor q.

    Parameters
    ----------
    n_clusters : int, default=300
        J, the clusters that it starts from.
    q : float, default=6.5
        A cluster is removed if it is this many standard deviations rarer than expected.
    collisions : {"drop", "assign"}, default="drop"
        What becomes of a task two of whose classes have the same nearest centroid: left without labels (the paper), or
        labelled by the best matching of its classes with different centroids.
    guard : bool, default=True
        Go back to an earlier pass where pruning ran away; see `mela.labeling.pruning.prune_clusters`.
    min_count : int, default=1
        Tasks that a cluster needs.
    cumulative_weights : bool, default=False
        Keep the weights of the running means between passes, as the authors' code does.
    max_passes : int, default=100
    soft : bool, default=False
        Also tell how much each sample belongs to each cluster, and enable `predict_proba`.
    random_state : int, RandomState or None, default=0
        Of the first clusters and the order of the visits.

    Attributes
    ----------
    labels_ : int64 (n_samples,)
        Cluster of each sample, -1 where its task was not clustered.
    cluster_centers_ : float64 (n_clusters, n_features)
    counts_ : int64 (n_clusters,)
        Tasks in which a cluster was found, before tasks were assigned for the last time.
    n_iter_ : int
        Passes.
    path_ : list of mela.labeling.pruning.Pass
        Clusters, threshold and share of tasks clustered of each pass.
    chosen_pass_ : int
        The pass, from 0, that the clusters come from.
    pruned_ : mela.labeling.pruning.Pruned
        Whether it settled, and whether it ran away.
    threshold_ : float
        Tasks below which a cluster was removed last.
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
    >>> from mela import LearnLabeler
    >>> rng = np.random.default_rng(1)
    >>> centers = rng.normal(size=(6, 4)) * 4
    >>> truth = np.concatenate([rng.permutation(6)[:3] for _ in range(40)])
    >>> X = centers[truth].repeat(5, axis=0) + rng.normal(size=(600, 4))
    >>> y = np.tile([0, 1, 2], 40).repeat(5)
    >>> groups = np.arange(40).repeat(15)
    >>> labeler = LearnLabeler(n_clusters=8, q=3).fit(X, y, groups)
    >>> len(labeler.cluster_centers_)
    6
    >>> from sklearn.metrics import adjusted_rand_score
    >>> adjusted_rand_score(truth.repeat(5), labeler.labels_)
    1.0
    """

    path_: list[Pass]
    chosen_pass_: int
    pruned_: Pruned
    threshold_: float
    _advice = "raise labeler.q, or "

    def __init__(
        self,
        n_clusters: int = 300,
        q: float = 6.5,
        *,
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
        self.collisions = collisions
        self.guard = guard
        self.min_count = min_count
        self.cumulative_weights = cumulative_weights
        self.max_passes = max_passes
        self.soft = soft
        self.random_state = random_state

    def _find(self, samples: TaskSamples, classes: ClassMeans) -> Floats:
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
        self.n_iter_, self.chosen_pass_, self.pruned_ = len(pruned.path), pruned.chosen, pruned
        self.threshold_ = pruned.path[pruned.chosen].threshold
        return classes.means

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._require_counts("n_clusters", "max_passes")
        self._require_flags("guard", "cumulative_weights")
        if not (isinstance(self.q, Real) and 0 <= self.q < np.inf):
            raise MelaError(f"labeler.q: expected a finite number of at least 0, got {self.q!r}")
