"""Define LearnLabeler: Algorithm 2 of the paper as a scikit-learn estimator."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from mela.data.array_types import Floats
from mela.errors import MelaError
from mela.labeling.assignment import Collisions
from mela.labeling.centroids import nearest
from mela.labeling.clusters import weighted_sums
from mela.labeling.corrections import Corrections
from mela.labeling.links import Links
from mela.labeling.pair_quality import pair_quality
from mela.labeling.pruning import Pass, Pruned, prune_clusters
from mela.labeling.task_classes import ClassMeans, TaskSamples
from mela.labeling.task_labeler import TaskLabeler


class LearnLabeler(TaskLabeler):
    r"""Infer the global classes of independently labelled tasks by pruning clusters: Algorithm 2 of the paper.

    A pass visits all tasks, and moves the nearest centroid of each task class towards its mean,

    .. math:: v^*_j = \arg\min_v |g_v - \bar\psi_j|^2, \qquad
        g_v \leftarrow \frac{N_v g_v + I \bar\psi_j}{N_v + I} \quad (12, 13)

    where :math:`\bar\psi_j` is the mean of the I samples of a task class. It skips a task two of whose classes have the
    same nearest centroid. After a pass, clusters are removed whose number of tasks is q standard deviations below the
    mean number (14, 15). Passes end when none is removed (`mela.labeling.pruning.prune_clusters`). Then each task class
    takes its nearest centroid. `MergeLabeler` needs neither n_clusters nor q.

    Parameters
    ----------
    n_clusters : int, default=300
        J, the clusters that it starts from.
    q : float, default=6.5
        A cluster is removed if it has this many standard deviations fewer tasks than the mean of all clusters.
    guard : bool, default=True
        Go back to an earlier pass where pruning ran away; see `mela.labeling.pruning.prune_clusters`.
    min_count : int, default=1
        Clusters in fewer tasks are removed, whatever q is.
    cumulative_weights : bool, default=False
        Keep the weights of the running means between passes, as the authors' code does.
    max_passes : int, default=100
        Passes after which pruning ends even if the last one removed clusters.
    collisions, soft
        See `mela.labeling.task_labeler.TaskLabeler`, which has the other attributes too.
    random_state : int, RandomState or None, default=0
        Seed of the first clusters and the order of the visits.

    Attributes
    ----------
    n_iter_ : int
        Number of passes.
    path_ : list of mela.labeling.pruning.Pass
        Clusters, threshold and share of tasks clustered of each pass.
    chosen_pass_ : int
        The pass, from 0, that the clusters come from.
    pruned_ : mela.labeling.pruning.Pruned
        Whether it settled, and whether it ran away.
    corrections_ : mela.labeling.corrections.Corrections
        The clusters before anybody's word changes them, which tells what to ask (`mela.labeling.questions`).
    threshold_ : float
        Tasks below which a cluster was removed last.

    References
    ----------
    Wang, Pontil and Ciliberto, "The Role of Global Labels in Few-Shot Classification and How to Infer Them", 2021.
    """

    path_: list[Pass]
    corrections_: Corrections
    chosen_pass_: int
    pruned_: Pruned
    threshold_: float
    _block = "labeler"
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

    def _find(self, samples: TaskSamples, classes: ClassMeans, links: Links | None) -> Floats:
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
        self._own = nearest(classes.means, pruned.centroids)
        wrong = 1 - pair_quality(self._own, classes.starts).precision
        self.corrections_ = Corrections.of(self._own, classes.means, classes.starts, wrong, wrong, None)
        if links is not None:
            self._own = links.require_ways(self.corrections_.after(links))
            weights, sums = weighted_sums(self._own, classes.means, classes.sizes)
            self.cluster_centers_, self.counts_ = sums / weights[:, None], np.bincount(self._own).astype(np.int64)
        return classes.means

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._require_counts("n_clusters", "max_passes")
        self._require_flags("guard", "cumulative_weights")
        if not (isinstance(self.q, Real) and 0 <= self.q < np.inf):
            raise MelaError(f"labeler.q is {self.q!r}, but must be a finite number of 0 or more; give one, such as 6.5")
