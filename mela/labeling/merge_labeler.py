"""Define MergeLabeler: a scikit-learn estimator that merges task classes that are probably one class."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.alike_names import name_groups
from mela.labeling.assignment import Collisions
from mela.labeling.clusters import of_sources, renumbered, weighted_sums
from mela.labeling.corrections import Corrections
from mela.labeling.effects import Effects, find_effects
from mela.labeling.growth import grow, more
from mela.labeling.held_out import held_out_error
from mela.labeling.links import Links, given_links
from mela.labeling.memberships import Memberships, MoreOdds
from mela.labeling.merging import OTHERWISE, Merged, left_out, merge_classes
from mela.labeling.name_gain import NameGain
from mela.labeling.name_odds import KnownWords, Names
from mela.labeling.named_clusters import use_names
from mela.labeling.nearest_points import ALL_PAIRS
from mela.labeling.pair_quality import PairQuality, joined_share, pair_quality, pairs_inside
from mela.labeling.shifts import Shifts
from mela.labeling.space import Space
from mela.labeling.task_classes import ClassMeans, TaskSamples, class_means, with_sources, with_written
from mela.labeling.task_labeler import TaskLabeler
from mela.labeling.unseen_tasks import place_by_model

# share of the task classes that would reach their own cluster by themselves
FIRM = 0.9
# and this share, where these task classes need no other judge than the clusters of all
SURE = 0.98
# standard error of a precision that tells nothing
UNKNOWN = 0.25


class MergeLabeler(TaskLabeler):
    r"""Infer the global classes of independently labelled tasks by merging the classes of tasks.

    Task classes are merged as long as it is more probable than not that they are one class, given how far apart they
    lie, how much the samples of one differ, and which clusters met in a task (`mela.labeling.merging.merge_classes`).
    The number of classes follows, and a class may be as rare as it likes.

    Where people differ, task classes of one class lie further apart than their samples tell, and merging keeps them
    apart. So a second partition is found by the neighbours that they share (`mela.labeling.effects.find_effects`).
    Merging is *firm* if at least 90% of the task classes still have their cluster as the nearest one without
    themselves, which many people who differ each in their own way would prevent. The second partition replaces merging
    only if it passes two tests of `match` (`mela.labeling.pair_quality`):

    1. It exceeds the `match` of merging by more than two standard errors. For this, merging places each task class by
       centers that are computed without it. Its `match` is not taken below 0, which joining nothing has, or above
       :math:`\sqrt{b}`, which it has if all pairs that it joins are right. Where such a bound is taken, it has no
       standard error, unless merging is firm.
    2. Half of the tasks choose a cut and the others judge it, in turns. This `match` exceeds that of merging, too.
       Where merging is firm, it must do so by two standard errors. An embedding drives the classes of its own tasks
       apart, so pairs inside few tasks may speak for coarser clusters.

    Where merging is not firm, shifts that all classes of a task share are subtracted for the second partition
    (`mela.labeling.shifts`). If it is better for it, each pair of task classes is also compared with other pairs of the
    same two tasks (`mela.labeling.pair_scores`). Task classes of one task that share a cluster of the second partition
    are told apart, so that it loses no task.

    Parameters
    ----------
    min_count : int, default=1
        Task classes that a cluster needs. Those of rarer clusters go to their nearest other one, and tasks two of
        whose classes then have the same one are left out, unless `collisions` is "assign".
    collisions, soft
        See `mela.labeling.task_labeler.TaskLabeler`, which has the other attributes too.
    random_state : int, RandomState or None, default=0
        Seed of the fragments that merging starts from where 5,001 to 100,000 task classes are of fewer than about 1,300
        classes; nothing else depends on it.

    Attributes
    ----------
    n_iter_ : int
        Merges.
    merged_ : mela.labeling.merging.Merged
        The space in which distances were taken, and the odds of the merges.
    effects_ : mela.labeling.effects.Effects or None
        The partition that allows for people who differ; None where merging is as good.
    shifts_ : mela.labeling.shifts.Shifts or None
        What that partition takes for shifts that the classes of a task share. They are subtracted from new tasks, too.
    expected_ari_ : float or None
        Estimated adjusted Rand index of the clusters of task classes (`mela.labeling.expected_ari`), before classes of
        one task are told apart and rare clusters are dropped. Where names have changed the clusters, it takes names for
        right. None where pairs inside tasks, or the task classes of a cluster, are too few to tell.
    consistency_ : float
        Share of the labelled task classes whose cluster is still the nearest one when they are taken out of its center.
        A value far below 1 says that the labels rest on thin evidence.
    corrections_ : mela.labeling.corrections.Corrections
        The clusters before anybody's word changes them, which tells what to ask (`mela.labeling.questions`).
    names_ : mela.labeling.name_gain.NameGain or None
        What the names of local labels say, and how they changed the clusters; None where there are none, or they say
        no more than chance.

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
    effects_: Effects | None
    shifts_: Shifts | None
    expected_ari_: float | None
    consistency_: float
    corrections_: Corrections
    names_: NameGain | None
    _held_out: PairQuality | None
    # the model of clusters that `partial_fit` has added to
    _grown: Memberships | None = None
    # those of `names_`, and what was written in the clusters, which a file keeps
    _names: Names | None = None
    _words: KnownWords | None = None
    _block = "merging"

    def __init__(
        self, *, collisions: Collisions = "drop", min_count: int = 1, soft: bool = False, random_state: Any = 0
    ) -> None:
        self.collisions = collisions
        self.min_count = min_count
        self.soft = soft
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any = None,
        groups: Any = None,
        sources: Any = None,
        *,
        must_link: Any = None,
        cannot_link: Any = None,
        names: Any = None,
    ) -> Self:
        """Infer global labels.

        Parameters
        ----------
        X, y, groups, must_link, cannot_link
            As `mela.LearnLabeler.fit` takes them.
        sources : array-like (n_samples,), optional
            Person, or other source, of each sample, of any kind that can be sorted; all samples of a task have the
            same one. What the tasks of a person have in common is then found from all of them together. Without it,
            each task counts as another person's, and so does each new task of `predict`.
        names : array-like (n_samples,), optional
            What the person calls the class of each sample, taken as text; all samples of a local label have the same
            name. Where people who call classes alike are common, names change the clusters
            (`mela.labeling.named_clusters`) and their certainties.

        Raises
        ------
        ValueError
            As `mela.LearnLabeler.fit`; lengths differ, a task has samples of two sources, or a local label of two
            names.
        """
        samples = self._samples(X, y, groups, reset=True)
        if sources is not None:
            samples = with_sources(samples, sources)
        if names is not None:
            samples = with_written(samples, names)
        return self.fit_tasks(samples, given_links(samples, must_link, cannot_link))

    def partial_fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        """Give the labels of new tasks to the classes that are known, or open new ones (`mela.labeling.growth`).

        Known clusters keep their numbers, and new ones follow. The first call is a `fit`. After others, ``labels_``,
        ``class_labels_``, ``class_clusters_`` and ``task_classes_`` are those of the new tasks, and so are the weights
        if `soft`. What tells of the search, such as ``merged_`` or ``expected_ari_``, remains that of `fit`.

        Parameters
        ----------
        X, y, groups
            As `fit` takes them; tasks may all have one class. Each task counts as another person's. Classes of a task
            get different clusters whatever `collisions` says, and rare clusters stay whatever `min_count` says. Links
            and names of `fit` hold for its tasks only.

        Raises
        ------
        ValueError
            As `fit` about X, y and groups; the labeler was read from a file that has no model of its classes.
        """
        if not hasattr(self, "cluster_centers_"):
            return self.fit(X, y, groups)
        self._check_parameters()
        samples = self._samples(X, y, groups, reset=False)
        space, model = self.merged_.space, self._known_model()
        classes, size = class_means(samples), self.class_size_
        points, weights = space.transform(self._means(classes)), classes.sizes / size
        placed = place_by_model(model, points, weights, classes.starts).clusters
        grown = grow(model, points, weights, classes.starts, placed)
        found, k = grown.clusters, len(grown.model.weights)
        before, (added, sums) = more(model.weights, k) * size, weighted_sums(found, classes.means, classes.sizes, k)
        self.cluster_centers_ = (more(self.cluster_centers_, k) * before[:, None] + sums) / (before + added)[:, None]
        self.counts_ = more(self.counts_, k) + np.bincount(found, minlength=k)
        self.task_classes_, self.n_single_tasks_ = samples, int((classes.ways < 2).sum())
        self.class_clusters_ = self.class_labels_ = found
        self.labels_, self._grown = samples.spread(found), grown.model
        if self.soft:
            self.space_, self.memberships_ = space, grown.model
            self.class_weights_ = grown.model.of_tasks(points, weights, found, classes.starts, members=True)
            self.soft_labels_ = self.class_weights_[samples.spread(np.arange(len(found)))]
        return self

    def fit_tasks(self, samples: TaskSamples, links: Links | None = None) -> Self:
        """Infer global labels as `TaskLabeler.fit_tasks` does, and keep what words people wrote for them."""
        super().fit_tasks(samples, links)
        if self._names is not None and samples.written is not None:
            written, k = samples.written.tolist(), len(self.cluster_centers_)
            self._words = KnownWords.of(self._names, written, self.class_labels_, k)
        return self

    def _known_model(self) -> Memberships:
        """Return the model of the clusters."""
        known = self.memberships_ if self._grown is None else self._grown
        if known is not None:
            return known
        if not hasattr(self, "task_classes_"):
            raise MelaError(
                "partial_fit: expected a labeler with a model of its classes, got one that was saved without; fit it "
                "with soft=True, and save it again"
            )
        return self._class_model(class_means(self.task_classes_), self.merged_.space)[2]

    def _find(self, samples: TaskSamples, classes: ClassMeans, links: Links | None) -> Floats:
        self._grown = self._names = self._words = None
        merged, effects, own = self._by_features(samples, classes)
        means = classes.means if effects is None else effects.means
        self.names_ = _named(own, means, samples)
        if self.names_ is not None:
            found, self._names = self.names_.clusters, self.names_.names
            error = own.error_of(found)
            own = replace(own, clusters=found, error=error, wrong=own.wrong if error is None else error)
        found = own.clusters if links is None else links.require_ways(own.after(links))
        told = links is not None or self.names_ is not None
        if told:
            error, known = own.error_of(found), int(pairs_inside(classes.starts).sum())
            judged = None if error is None else PairQuality.by_error(error, known, joined_share(found))
            if effects is not None:
                # names keep the classes of a task apart, so that pairs inside tasks cannot judge them
                quality = pair_quality(found, classes.starts) if self.names_ is None else judged or effects.quality
                finest = effects.finest if self.names_ is None else own.clusters
                if links is not None:
                    finest = replace(own, clusters=renumbered(finest)).after(links)
                effects = effects.changed(found, finest, error, quality, classes.starts)
            else:
                merged = replace(merged, assignments=found)
                self._held_out = judged or self._held_out
        self.corrections_, self.expected_ari_ = own, own.expected_ari(found)
        if effects is not None:
            space = effects.space
            merged = replace(merged, space=space, points=space.transform(means), assignments=effects.assignments)
        counts = np.bincount(merged.assignments[merged.assignments >= 0]).astype(np.int64)
        keep = counts >= self.min_count
        if links is not None:
            # what somebody says is kept to, however rare it is
            named = merged.assignments[links.asked]
            keep[named[named >= 0]] = True
        if not keep.all():
            # other tasks have judged clusters before rare ones were dropped
            self._held_out = None
        if keep.sum() < classes.ways.max():
            rare = (
                f", {keep.sum()} of them in merging.min_count={self.min_count} tasks or more"
                if self.min_count > 1
                else ""
            )
            advice = "lower merging.min_count, " if rare else ""
            raise MelaError(
                f"merging: found {len(counts)} classes{rare}, fewer than the {classes.ways.max()} ways of task "
                f"{classes.widest}; {advice}train the embedding longer, give more samples per class, or "
                f"{OTHERWISE}"
            )
        weights, sums = weighted_sums(merged.assignments, means, classes.sizes)
        self.cluster_centers_, self.counts_ = (sums / weights[:, None])[keep], counts[keep]
        if effects is not None or told:
            number = np.where(keep, np.cumsum(keep) - 1, -1)
            merged = replace(merged, assignments=np.where(merged.assignments >= 0, number[merged.assignments], -1))
        # neither neighbours nor people say that each task class is closest to its own center
        self._own = merged.assignments if effects is not None or told else None
        self.shifts_ = None if effects is None else effects.shifts
        self.effects_, self.merged_, self.n_iter_ = effects, merged, sum(done.kept for done in merged.phases)
        return merged.points

    def _by_features(self, samples: TaskSamples, classes: ClassMeans) -> tuple[Merged, Effects | None, Corrections]:
        """Return what merging and neighbours find, and the clusters of the better one with what is known of them."""
        seed = check_random_state(self.random_state).randint(2**31)
        merged = merge_classes(samples, classes, seed=seed)
        # merging keeps the classes of a task apart; where each class would go by itself, pairs inside tasks can judge
        alone = left_out(merged.points, classes.sizes, merged.assignments, classes.of_sources)
        placed = pair_quality(alone, classes.starts)
        # but it is no worse than to join nothing, and no better than if all that it joined were right
        joined = joined_share(merged.assignments)
        bounded = min(max(placed.match, 0.0), joined**0.5)
        consistent = float((alone == merged.assignments)[merged.assignments >= 0].mean())
        firm = consistent >= FIRM
        plain = placed
        if placed.match != bounded:
            # the bound is exact, but what lies below it is not sure, and firm merging has the benefit of the doubt
            error = min(placed.match_error, bounded) if firm else 0.0
            plain = replace(placed, match=bounded, match_error=error, shared=joined)
        fragments = _fragments(merged, classes)
        effects, same = find_effects(samples, classes, fragments, plain, firm=firm)
        self._held_out = None
        if effects is None:
            shared, error, quality, same = joined, 1 - placed.precision, placed, max(same or 0.0, joined)
            if shared and consistent < SURE:
                error = held_out_error(samples, classes, int(merged.assignments.max()) + 1, seed=seed)
                if error is not None:
                    known = int(pairs_inside(classes.starts).sum())
                    self._held_out = quality = PairQuality.by_error(error, known, shared)
        else:
            shared, error, quality = effects.quality.shared, effects.error, effects.quality
        # if nothing is joined, nothing needs to be judged, but a single task has nothing to join
        if not (quality.precision_error < UNKNOWN if shared else len(classes.starts) > 2):
            error = None
        found, means = (merged.assignments, classes.means) if effects is None else (effects.cut, effects.means)
        return merged, effects, Corrections.of(found, means, classes.starts, 1 - quality.precision, error, same)

    @property
    def learned_labels(self) -> Ints:
        """Cluster of each task class (n_task_classes,) for a network to learn, -1 where it has none.

        Where people differ, these are the clusters before classes of one task were told apart. One of them is then
        wrong, but a class of its own would be wrong as well, and farther from its true class.
        """
        if (found := self._effects_for_learning) is None:
            return self.class_labels_
        return np.where(found.cut >= 0, found.cut, self.class_labels_)

    @property
    def round_labels(self) -> Ints:
        """Cluster of each task class (n_task_classes,) for a round of training to learn, -1 where it has none.

        Where people differ, fewer task classes share a cluster than by `learned_labels`. A network that has learned a
        wrong pair shows it as right to the next round, while pairs that are not joined yet may be joined then.
        """
        found = self._effects_for_learning
        return self.class_labels_ if found is None else found.finest

    def _told_by_names(self, clusters: Ints) -> MoreOdds | None:
        if self._names is None:
            return None
        if len(self._names.groups) != len(clusters):
            raise MelaError(
                f"labeler: it was fitted to {len(self._names.groups)} task classes with names, while these are "
                f"{len(clusters)}; rerun the stage that infers the labels"
            )
        return self._names.of_others(clusters, len(self.cluster_centers_)).log_ratios

    def _told_by_words(self, words: Sequence[str], k: int) -> MoreOdds | None:
        return None if self._words is None else self._words.log_ratios(words, k)

    @property
    def _effects_for_learning(self) -> Effects | None:
        """Clusters for a network to learn; None where they are those of `class_labels_`.

        A cut has rare clusters, too, so where `min_count` drops some, it cannot be learned. Nor has it the tasks of
        `partial_fit`.
        """
        return None if self.min_count > 1 or self._grown is not None else self.effects_

    def _quality(self, found: Ints, points: Floats, classes: ClassMeans) -> PairQuality:
        # a class that is judged by a center which it helped to make looks better than it is
        used = self.class_labels_ >= 0
        parts, of_parts = self.class_labels_, np.arange(len(self.cluster_centers_))
        if self._own is not None and self.effects_ is None:
            # what people joined need not be close together
            both = np.stack([self.class_labels_, self.corrections_.clusters], axis=1)[used]
            whole, numbers = np.unique(both, axis=0, return_inverse=True)
            parts, of_parts = np.full(len(used), -1), whole[:, 0]
            parts[used] = numbers.ravel()
        found = of_parts[left_out(points, classes.sizes, parts, classes.of_sources)]
        self.consistency_ = float((found == self.class_labels_)[used].mean())
        if self.effects_ is not None:
            return self.effects_.quality
        return pair_quality(found, classes.starts) if self._held_out is None else self._held_out

    def _fitted_means(self, classes: ClassMeans) -> Floats:
        return classes.means if self.effects_ is None else self.effects_.means

    def _means(self, classes: ClassMeans) -> Floats:
        return classes.means if self.shifts_ is None else self.shifts_.subtract(classes.means, classes.starts)

    def _project(self, points: Floats) -> Floats:
        return self.merged_.space.transform(points)

    def _model_space(self, samples: TaskSamples, classes: ClassMeans) -> Space | None:
        return self.merged_.space


def _named(own: Corrections, means: Floats, samples: TaskSamples) -> NameGain | None:
    """Return the clusters that the names of task classes (n,) speak for; None where there are none, or say nothing."""
    if samples.written is None:
        return None
    sources = np.arange(len(samples.starts) - 1) if samples.sources is None else samples.sources
    owners = np.repeat(sources, np.diff(samples.starts))
    candidates = (Names(groups=groups, owners=owners) for groups in name_groups(samples.written.tolist()))
    return use_names(own.clusters, means, samples.starts, candidates)


def _fragments(merged: Merged, classes: ClassMeans) -> Ints:
    """Return task classes that stay together (n,): of one source, those that merging joins; otherwise its fragments."""
    if classes.of_sources is None:
        return merged.fragments
    found = of_sources(merged.assignments, classes.of_sources)[1]
    small = found.max() < ALL_PAIRS or merged.fragments.max() == len(found) - 1
    return found if small else merged.fragments
