"""The estimator: scikit-learn's checks, what must not matter, and what it says about bad input."""

import doctest
import pickle
import re
from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.metaestimators import available_if

from mela.evaluation.label_scores import majority_accuracy
from mela.labeling import merge_labeler
from mela.labeling.assignment import assign_tasks
from mela.labeling.diagnostics import THIN, sizes_table
from mela.labeling.labeler_choice import build_labeler
from mela.labeling.learn_labeler import LearnLabeler
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.merging import left_out
from mela.labeling.pair_quality import pair_quality
from mela.labeling.pruning import prune_clusters
from mela.labeling.task_classes import class_means, group_samples
from mela.labeling.task_labeler import TaskLabeler, _is_soft


def in_fours(X: Any) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(X.shape[0] if hasattr(X, "shape") else len(np.asarray(X)))
    return rows % 2, rows * max(1, len(rows) // 4) // max(1, len(rows))


class WithoutGroups(TaskLabeler):
    """For checks that call ``fit(X)`` and ``fit(X, y)``: four rows make a task, every other one is of class 1.

    The checks set n_clusters to 1, fewer than any task has classes.
    """

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        given = self.get_params()
        if "n_clusters" in given:
            self.n_clusters = max(2, given["n_clusters"])
        try:
            return super().fit(X, *in_fours(X))
        finally:
            self.__dict__.update(given)

    def predict(self, X: Any, y: Any = None, groups: Any = None) -> np.ndarray:
        return super().predict(X)

    @available_if(_is_soft)
    def predict_proba(self, X: Any, y: Any = None, groups: Any = None) -> np.ndarray:
        return super().predict_proba(X)


class Merging(WithoutGroups, MergeLabeler):
    def partial_fit(self, X: Any, y: Any = None, groups: Any = None) -> Self:
        # the first call is a fit, which makes tasks itself
        return super().partial_fit(X, *in_fours(X))


class Pruning(WithoutGroups, LearnLabeler):
    pass


@pytest.mark.slow
@pytest.mark.versions
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("labeler", [Merging(), Pruning(n_clusters=2)], ids=["merged", "pruned"])
def test_scikit_learns_checks(labeler: TaskLabeler, soft: bool) -> None:
    """All but one: check_clustering wants the clusters that a mixture shows, of samples that belong to no task.

    check_array_api_input is skipped by scikit-learn unless SCIPY_ARRAY_API is set when the process starts.
    """
    results = check_estimator(
        labeler.set_params(soft=soft),
        on_fail=None,
        expected_failed_checks={"check_clustering": "clusters samples without local labels and tasks"},
    )
    checks = pd.DataFrame(results).groupby("status")["check_name"].agg(set)
    assert "failed" not in checks
    assert checks["xfail"] == {"check_clustering"}
    assert checks.get("skipped", set()) <= {"check_array_api_input"}
    assert len(checks["passed"]) > 30


def test_the_example_of_the_docstring() -> None:
    failed, tried = doctest.testmod(merge_labeler)
    assert (failed, tried > 5) == (0, True)


Tasks = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def drawn(
    seed: int, *, n_classes: int = 12, n_tasks: int = 60, distance: float = 4.0, mixed: bool = True, shots: int = 6
) -> Tasks:
    """Features, local labels, tasks and true classes of samples; ways and shots are mixed, rows shuffled."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, 8)) * distance / np.sqrt(2)
    features, local, tasks, truth = [], [], [], []
    for task in range(n_tasks):
        ways = int(rng.integers(2, 6)) if mixed else 4
        for label, true in enumerate(rng.choice(n_classes, size=ways, replace=False)):
            size = int(rng.integers(2, shots + 1)) if mixed else shots
            features.append(centers[true] + rng.normal(size=(size, 8)))
            local += ["abcdef"[label]] * size
            tasks += [f"t{task}"] * size
            truth += [true] * size
    order = rng.permutation(len(truth))
    return np.concatenate(features)[order], np.array(local)[order], np.array(tasks)[order], np.array(truth)[order]


PRUNING: dict[str, Any] = {"merge": False, "n_clusters": 30, "q": 3.0}


@pytest.mark.parametrize("seed", range(3))
def test_finds_the_classes_of_mixed_tasks(seed: int) -> None:
    X, y, groups, truth = drawn(seed)
    found = MergeLabeler().fit(X, y, groups)
    assert len(found.cluster_centers_) == len(found.counts_) == 12
    assert adjusted_rand_score(truth[found.labels_ >= 0], found.labels_[found.labels_ >= 0]) > 0.99
    assert found.consistency_ > 0.95
    assert found.pair_quality_.precision == pytest.approx(1, abs=0.05)
    assert found.n_features_in_ == 8


@pytest.mark.parametrize("settings", [{}, PRUNING], ids=["merged", "pruned"])
def test_attributes_agree_with_each_other(settings: dict[str, Any]) -> None:
    X, y, groups, _ = drawn(0, distance=2.0)
    found = build_labeler(**settings)
    labels = found.fit_predict(X, y, groups)
    np.testing.assert_array_equal(labels, found.labels_)
    assert labels.dtype == np.int64
    assert -1 in labels, "the case should have collisions"
    table = pd.DataFrame({"label": labels, "y": y, "group": groups})
    assert (table.groupby(["group", "y"])["label"].nunique() == 1).all(), "a task class has several labels"
    clustered = table[table["label"] >= 0].drop_duplicates(["group", "y"])
    assert not clustered.duplicated(["group", "label"]).any(), "two classes of a task share a cluster"
    assert (table.groupby("group")["label"].min().ge(0) == table.groupby("group")["label"].max().ge(0)).all()
    samples = found.task_classes_
    np.testing.assert_array_equal(found.class_labels_[samples.classes], labels[samples.order])
    assert (found.class_clusters_ >= 0).all()
    assert found.cluster_centers_.shape == (len(found.counts_), 8)


@pytest.mark.parametrize("settings", [{}, PRUNING], ids=["merged", "pruned"])
def test_predict_labels_the_training_tasks_as_fit_did(settings: dict[str, Any]) -> None:
    X, y, groups, _ = drawn(1, distance=2.5)
    found = build_labeler(**settings).fit(X, y, groups)
    np.testing.assert_array_equal(found.predict(X, y, groups), found.labels_)
    some = np.isin(groups, ["t3", "t8", "t20"])
    np.testing.assert_array_equal(found.predict(X[some], y[some], groups[some]), found.labels_[some])


@pytest.mark.parametrize("settings", [{}, PRUNING], ids=["merged", "pruned"])
def test_predict_without_tasks_takes_the_nearest_centroid(settings: dict[str, Any]) -> None:
    X, y, groups, truth = drawn(2)
    found = build_labeler(**settings).fit(X, y, groups)
    np.testing.assert_array_equal(found.predict(found.cluster_centers_), np.arange(len(found.cluster_centers_)))
    # a sample may fall to another fragment of its class than its task class did, which is no mistake
    assert majority_accuracy(found.predict(X), truth) > 0.9


@pytest.mark.parametrize("settings", [{}, PRUNING], ids=["merged", "pruned"])
def test_soft_labels_stand_beside_labels(settings: dict[str, Any]) -> None:
    X, y, groups, truth = drawn(0, distance=1.2, n_tasks=150)
    plain = build_labeler(**settings).fit(X, y, groups)
    found = build_labeler(**settings, soft=True).fit(X, y, groups)
    np.testing.assert_array_equal(found.labels_, plain.labels_)
    np.testing.assert_array_equal(found.cluster_centers_, plain.cluster_centers_)
    weights = found.soft_labels_.toarray()
    assert weights.shape == (len(X), len(found.cluster_centers_))
    np.testing.assert_allclose(weights.sum(axis=1), found.labels_ >= 0, atol=1e-12)
    samples = found.task_classes_
    np.testing.assert_array_equal(found.class_weights_.toarray()[samples.classes], weights[samples.order])
    used = found.labels_ >= 0
    own = weights[used, found.labels_[used]]
    majority = {label: np.bincount(truth[found.labels_ == label]).argmax() for label in np.unique(found.labels_[used])}
    right = np.array([majority[label] for label in found.labels_[used]]) == truth[used]
    assert 20 < (~right).sum() < 0.5 * len(right), "the case should have wrong labels"
    assert own[right].mean() > own[~right].mean() + 0.1, "what is wrong should be doubted more"


@pytest.mark.parametrize("settings", [{}, PRUNING], ids=["merged", "pruned"])
def test_probabilities_of_new_tasks_and_of_samples(settings: dict[str, Any]) -> None:
    X, y, groups, truth = drawn(1, distance=2.5, n_tasks=200)
    new = np.isin(groups, [f"t{task}" for task in range(100)])
    found = build_labeler(**settings, soft=True).fit(X[~new], y[~new], groups[~new])
    labels, weights = found.predict(X[new], y[new], groups[new]), found.predict_proba(X[new], y[new], groups[new])
    np.testing.assert_allclose(weights.sum(axis=1), labels >= 0, atol=1e-12)
    table = pd.DataFrame(weights).assign(y=y[new], group=groups[new])
    assert (table.groupby(["group", "y"]).nunique() == 1).all(axis=None), "a task class has several rows"
    assert (weights.argmax(axis=1) == labels)[labels >= 0].mean() > 0.9
    single = found.predict_proba(X[new])
    np.testing.assert_allclose(single.sum(axis=1), 1, rtol=1e-12)
    assert majority_accuracy(single.argmax(axis=1), truth[new]) > 0.6
    assert single.max(axis=1).mean() < weights[labels >= 0].max(axis=1).mean(), "one sample tells less than a class"


def test_soft_labels_only_where_asked_for() -> None:
    X, y, groups, _ = drawn(1)
    labeler = MergeLabeler(soft=True).fit(X, y, groups)
    assert pickle.loads(pickle.dumps(labeler)).predict_proba(X[:2]).shape == (2, 12)
    labeler.set_params(soft=False).fit(X, y, groups)
    for name in ("predict_proba", "soft_labels_", "class_weights_"):
        assert not hasattr(labeler, name), name
    with pytest.raises(ValueError, match=r"^predict_proba: .* not fitted with soft=True"):
        labeler.set_params(soft=True).predict_proba(X)


def test_single_samples_have_certain_weights_and_no_probabilities() -> None:
    X, y, groups, _ = drawn(1, mixed=False, shots=1)
    found = build_labeler(**PRUNING, soft=True).fit(X, y, groups)
    used = found.labels_ >= 0
    np.testing.assert_array_equal(found.soft_labels_.toarray()[used], np.eye(len(found.counts_))[found.labels_[used]])
    with pytest.raises(ValueError, match=r"^predict_proba: .* each of its task classes has a single sample"):
        found.predict_proba(X)


def test_colliding_tasks_are_dropped_or_matched() -> None:
    X, y, groups, truth = drawn(3, distance=2.0)
    dropped = MergeLabeler().fit(X, y, groups)
    kept = MergeLabeler(collisions="assign").fit(X, y, groups)
    collided = dropped.labels_ < 0
    assert 0 < collided.mean() < 0.5
    np.testing.assert_array_equal(kept.labels_[~collided], dropped.labels_[~collided])
    assert (kept.labels_ >= 0).all()
    assert adjusted_rand_score(truth[collided], kept.labels_[collided]) > 0.3


@pytest.mark.parametrize("seed", range(3))
def test_pruning_is_that_of_prune_clusters(seed: int) -> None:
    X, y, groups, _ = drawn(seed)
    found = build_labeler(**PRUNING, random_state=seed).fit(X, y, groups)
    classes = class_means(group_samples(X, np.arange(len(X)), groups, y))
    pruned = prune_clusters(classes, n_clusters=30, q=3.0, seed=seed)
    np.testing.assert_array_equal(found.cluster_centers_, pruned.centroids)
    np.testing.assert_array_equal(found.counts_, pruned.counts)
    assert (found.path_, found.n_iter_, found.chosen_pass_) == (pruned.path, len(pruned.path), pruned.chosen)
    _, labels = assign_tasks(classes.means, classes.starts, pruned.centroids, "drop")
    np.testing.assert_array_equal(found.class_labels_, labels)


def partition(labels: np.ndarray) -> list[int]:
    """Clusters numbered in the order in which they first occur, so that equal partitions are equal lists."""
    return [int(number) for number in pd.factorize(np.where(labels < 0, np.nan, labels))[0]]


@pytest.mark.slow
@pytest.mark.parametrize("settings_", [{}, PRUNING], ids=["merged", "pruned"])
@given(seed=st.integers(0, 2**31), distance=st.floats(1.5, 4))
@settings(deadline=None, max_examples=15)
def test_what_must_not_matter(settings_: dict[str, Any], seed: int, distance: float) -> None:
    """The order of the samples, and rotating, shifting or scaling the features."""
    rng = np.random.default_rng(seed)
    X, y, groups, _ = drawn(seed, n_tasks=40, distance=distance)
    found = build_labeler(**settings_).fit(X, y, groups)
    wanted = partition(found.labels_)

    order = rng.permutation(len(X))
    shuffled = build_labeler(**settings_).fit(X[order], y[order], groups[order])
    assert partition(shuffled.labels_[np.argsort(order)]) == wanted

    turned = 7 * X @ ortho_group.rvs(8, random_state=seed % 2**32) + rng.normal(size=8)
    assert partition(build_labeler(**settings_).fit(turned, y, groups).labels_) == wanted


@pytest.mark.slow
@given(seed=st.integers(0, 2**31), distance=st.floats(1.5, 4))
@settings(deadline=None, max_examples=15)
def test_merging_does_not_depend_on_the_order_of_tasks_and_labels(seed: int, distance: float) -> None:
    rng = np.random.default_rng(seed)
    X, y, groups, _ = drawn(seed, n_tasks=40, distance=distance)
    wanted = partition(MergeLabeler().fit(X, y, groups).labels_)
    names = dict(zip(np.unique(groups), rng.permutation(1000)[:40], strict=True))
    renamed = np.array([names[group] for group in groups])
    labels = np.array([(1 if renamed[i] % 2 else -1) * ord(label) for i, label in enumerate(y)])
    assert partition(MergeLabeler().fit(X, labels, renamed).labels_) == wanted


@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=20)
def test_permuting_the_clusters_leaves_the_partition(seed: int) -> None:
    X, y, groups, _ = drawn(seed, n_tasks=30, distance=2.5)
    found = build_labeler(**PRUNING).fit(X, y, groups)
    labels = found.predict(X, y, groups)
    order = np.random.default_rng(seed).permutation(len(found.cluster_centers_))
    found.cluster_centers_ = found.cluster_centers_[order]
    assert partition(found.predict(X, y, groups)) == partition(labels)


@pytest.mark.slow
@given(seed=st.integers(0, 2**31), q=st.floats(0, 4), merge=st.booleans())
@settings(deadline=None, max_examples=40)
def test_never_fewer_clusters_than_the_largest_way(seed: int, q: float, merge: bool) -> None:
    X, y, groups, _ = drawn(seed, n_tasks=25, distance=1.5)
    estimator = build_labeler(n_clusters=25, q=q, merge=merge, collisions="assign")
    try:
        found = estimator.fit(X, y, groups)
    except ValueError:
        with pytest.raises(ValueError, match=r"^merging: found .* fewer than the \d ways of task"):
            estimator.fit(X, y, groups)
    else:
        assert len(found.cluster_centers_) >= pd.Series(y).groupby(groups).nunique().max()


@pytest.mark.slow
@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5])
def test_rare_classes_are_kept(exponent: float) -> None:
    """30 classes whose frequencies fall as a power of their rank.

    In twice as many tasks, a cut at the binomial's quantile kept 12 to 27 of the classes.
    """
    rng = np.random.default_rng(0)
    centers = 6 * rng.normal(size=(30, 16))
    share = 1 / np.arange(1, 31) ** exponent
    truth = np.concatenate([rng.choice(30, size=5, replace=False, p=share / share.sum()) for _ in range(300)])
    X = centers[truth].repeat(4, axis=0) + rng.normal(size=(4 * len(truth), 16))
    y, groups = np.tile(np.arange(5), 300).repeat(4), np.arange(300).repeat(20)
    frequencies = np.bincount(truth)
    assert frequencies.max() > 5 * frequencies.min(), "the case should have rare classes"
    found = MergeLabeler().fit(X, y, groups)
    assert sorted(found.counts_.tolist()) == sorted(frequencies.tolist())
    assert adjusted_rand_score(truth, found.class_labels_) == 1
    assert found.consistency_ == 1


@pytest.mark.slow
def test_only_min_count_removes_classes_after_merging() -> None:
    """12 classes in 300 tasks of 4, and one more that occurs twice."""
    X, y, groups, _ = drawn(5, n_tasks=300, mixed=False)
    X = X.copy()
    for task in ("t7", "t11"):
        X[(groups == task) & (y == "a")] += 60
    assert MergeLabeler().fit(X, y, groups).counts_.min() == 2
    assert len(MergeLabeler(min_count=2).fit(X, y, groups).counts_) == 13
    found = MergeLabeler(min_count=3).fit(X, y, groups)
    assert len(found.cluster_centers_) == len(found.counts_) == 12
    assert set(sizes_table(found)["threshold"]) == {3}
    assert found.counts_.min() > 3


def test_quality_is_that_of_the_final_labels() -> None:
    """Not of the partition before rare clusters went and tasks were assigned for the last time."""
    X, y, groups, _ = drawn(0, distance=1.5, n_tasks=80)
    found = MergeLabeler(min_count=16).fit(X, y, groups)
    labels, used = found.class_labels_, found.class_labels_ >= 0
    assert (labels != found.merged_.assignments).any(), "the case should change labels at the end"
    assert not used.all(), "the case should drop tasks"
    points, sizes = found.merged_.points, found.task_classes_.sizes
    own = left_out(points, sizes, labels)
    assert found.consistency_ == (own == labels)[used].mean()
    assert found.pair_quality_ == pair_quality(own, found.task_classes_.starts)
    before = left_out(points, sizes, found.merged_.assignments)
    assert found.pair_quality_ != pair_quality(before, found.task_classes_.starts)


@pytest.mark.parametrize("settings", [{}, PRUNING], ids=["merged", "pruned"])
def test_tasks_of_one_class_and_of_one_sample_are_labelled(settings: dict[str, Any]) -> None:
    X, y, groups, truth = drawn(1, n_tasks=100)
    several = build_labeler(**settings).fit(X, y, groups)
    assert several.n_single_tasks_ == 0
    # of 20 tasks one class stays, of 10 more a single sample
    number = np.array([int(group[1:]) for group in groups])
    kept = (number >= 30) | ((number < 20) & (y == "a"))
    kept[[np.flatnonzero(number == task)[0] for task in range(20, 30)]] = True
    X, y, groups, truth, number = X[kept], y[kept], groups[kept], truth[kept], number[kept]
    found = build_labeler(**settings).fit(X, y, groups)
    assert found.n_single_tasks_ == 30
    single = number < 30
    assert (found.labels_[single] >= 0).all(), "a task of one class cannot collide"
    used = found.labels_ >= 0
    assert majority_accuracy(found.labels_[used], truth[used]) > 0.97
    majority = {label: np.bincount(truth[found.labels_ == label]).argmax() for label in np.unique(found.labels_[used])}
    assert np.mean([majority[label] for label in found.labels_[single]] == truth[single]) > 0.9
    np.testing.assert_array_equal(found.predict(X[single], y[single], groups[single]), found.labels_[single])


def test_random_state_can_be_a_generator() -> None:
    X, y, groups, _ = drawn(0)
    first = build_labeler(**PRUNING, random_state=np.random.RandomState(3)).fit(X, y, groups)
    second = build_labeler(**PRUNING, random_state=np.random.RandomState(3)).fit(X, y, groups)
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)


def test_merging_warns_by_its_consistency_when_there_is_little_to_go_by() -> None:
    X, y, groups, truth = drawn(0, n_classes=40, n_tasks=30, distance=0.6)
    found = MergeLabeler(collisions="assign").fit(X, y, groups)
    assert found.consistency_ < THIN
    assert adjusted_rand_score(truth, found.labels_) < 0.5


def test_merging_takes_its_own_of_the_parameters_of_both() -> None:
    found = build_labeler(merge=True, q=-1, n_clusters=0, max_passes=0, min_count=2, collisions="assign")
    assert found.get_params() == MergeLabeler(min_count=2, collisions="assign").get_params()
    assert build_labeler(merge=False, q=4.5).get_params() == LearnLabeler(q=4.5).get_params()


PIPED = [(MergeLabeler(), "mergelabeler"), (LearnLabeler(n_clusters=30, q=3.0), "learnlabeler")]


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("labeler", [labeler for labeler, _ in PIPED], ids=[name for _, name in PIPED])
def test_a_pickled_labeler_predicts_the_same_and_a_clone_has_to_be_fitted(labeler: TaskLabeler, soft: bool) -> None:
    X, y, groups, _ = drawn(0)
    found = clone(labeler).set_params(soft=soft, collisions="assign").fit(X, y, groups)
    read = pickle.loads(pickle.dumps(found))
    assert read.get_params() == found.get_params()
    new = drawn(0, n_tasks=20, shots=3)[:3]
    assert len(np.unique(found.predict(*new))) > 5
    for asked in (new, new[:1]):
        np.testing.assert_array_equal(read.predict(*asked), found.predict(*asked))
        if soft:
            np.testing.assert_array_equal(read.predict_proba(*asked), found.predict_proba(*asked))
    np.testing.assert_array_equal(read.transform(new[0]), found.transform(new[0]))
    copied = clone(found)
    assert (type(copied), copied.get_params()) == (type(found), found.get_params())
    with pytest.raises(NotFittedError):
        copied.predict(X)
    np.testing.assert_array_equal(copied.fit(X, y, groups).labels_, found.labels_)


@pytest.mark.parametrize(("labeler", "name"), PIPED)
def test_tasks_find_their_way_through_a_pipeline(labeler: TaskLabeler, name: str) -> None:
    X, y, groups, _ = drawn(0)
    # one feature counts for nothing until it is scaled
    X = X * [1e-3, 1, 1, 1, 1, 1, 1, 1]
    plain = clone(labeler).fit(StandardScaler().fit_transform(X), y, groups)
    found = make_pipeline(StandardScaler(), clone(labeler)).fit(X, y, **{f"{name}__groups": groups})
    np.testing.assert_array_equal(found[-1].labels_, plain.labels_)
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), clone(labeler).set_fit_request(groups=True)).fit(X, y, groups=groups)
    np.testing.assert_array_equal(routed[-1].labels_, plain.labels_)


@pytest.mark.parametrize("settings", [{}, PRUNING], ids=["merged", "pruned"])
def test_distances_to_the_clusters_are_those_that_predict_compares(settings: dict[str, Any]) -> None:
    X, y, groups, _ = drawn(0)
    found = build_labeler(**settings).set_output(transform="pandas").fit(X, y, groups)
    distances = found.transform(X)
    assert [*distances.columns] == [*found.get_feature_names_out()]
    assert distances.columns[1] == f"{type(found).__name__.lower()}1"
    np.testing.assert_array_equal(distances.to_numpy().argmin(axis=1), found.predict(X))
    between = found.transform(found.cluster_centers_).to_numpy()
    np.testing.assert_allclose(between, between.T, atol=1e-6)
    np.testing.assert_allclose(np.diagonal(between), 0, atol=1e-6)


def with_value(X: np.ndarray, row: int, value: float) -> np.ndarray:
    changed = X.copy()
    changed[row, 2] = value
    return changed


DATA = drawn(0, n_tasks=10)
X, Y, GROUPS, _ = DATA
LABELS_OF = pd.Series(Y).groupby(GROUPS)
FIRST, WAYS = LABELS_OF.transform("first").to_numpy() == Y, LABELS_OF.nunique()
# of the parameters of both labelers, by whether they merge
BLOCKS = {True: "merging", False: "labeler"}
BAD: dict[str, tuple[dict[str, Any], tuple[Any, Any, Any], str]] = {
    "NaN": (
        {},
        (with_value(X, 3, np.nan), Y, GROUPS),
        f"X: expected finite values, got NaN in row 3, column 2 (task {GROUPS[3]}, local label {Y[3]}); 1 of {len(X)}",
    ),
    "infinity": ({}, (with_value(X, 5, -np.inf), Y, GROUPS), "X: expected finite values, got infinity in row 5"),
    "one class in every task": (
        {},
        (X[FIRST], Y[FIRST], GROUPS[FIRST]),
        "groups: all 10 tasks have one class",
    ),
    "no samples": ({}, (X[:0], Y[:0], GROUPS[:0]), "Found array with 0 sample(s)"),
    "no y": ({}, (X, None, GROUPS), "y: expected the local label of each sample, got None"),
    "no groups": ({}, (X, Y, None), "groups: expected the task of each sample, got None"),
    "y too short": ({}, (X, Y[1:], GROUPS), f"X, y and groups have {len(X)}, {len(X) - 1} and {len(X)} entries"),
    "groups too long": (
        {},
        (X, Y, [*GROUPS, "t1"]),
        f"X, y and groups have {len(X)}, {len(X)} and {len(X) + 1} entries",
    ),
    "features of mixed lengths": ({}, ([[1.0, 2.0], [1.0]], ["a", "b"], [1, 1]), "inhomogeneous"),
    "y a table": ({}, (X, np.stack([Y, Y], axis=1), GROUPS), "y should be a 1d array"),
    **{
        f"q is {q!r}": (PRUNING | {"q": q}, DATA[:3], f"labeler.q is {q!r}, but must be a finite number")
        for q in (-0.5, float("nan"), float("inf"), None, "5")
    },
    **{
        f"{name} is {value!r}": (
            PRUNING | {name: value},
            DATA[:3],
            f"labeler.{name}: expected an integer of at least 1, got {value!r}",
        )
        for name, value in (("max_passes", 0), ("n_clusters", 2.5), ("n_clusters", True), ("min_count", "2"))
    },
    **{
        f"{name} is 'x'": (PRUNING | {name: "x"}, DATA[:3], f"labeler.{name}: expected True or False, got 'x'")
        for name in ("guard", "cumulative_weights", "soft")
    },
    **{
        f"a seed of {seed!r}, merge={merge}": (
            {"random_state": seed, "merge": merge},
            DATA[:3],
            f"{block}.random_state: expected an integer from 0 to 4294967295, a RandomState or None, got {seed!r}",
        )
        for seed in (-1, 2**32, "x")
        for merge, block in BLOCKS.items()
    },
    **{
        f"{name} is {value!r}, merge={merge}": (
            {name: value, "merge": merge, "n_clusters": 30},
            DATA[:3],
            f"{block}.{name}: expected {expected}, got {value!r}",
        )
        for name, value, expected in (
            ("collisions", "keep", "'drop' or 'assign'"),
            ("min_count", 0, "an integer of at least 1"),
            ("soft", 1, "True or False"),
        )
        for merge, block in BLOCKS.items()
    },
    "more ways than clusters": (
        {"merge": False, "n_clusters": 4},
        DATA[:3],
        f"labeler.n_clusters is 4, but task {WAYS.idxmax()} alone has 5 classes",
    ),
    "more clusters than task classes": (
        {"merge": False, "n_clusters": 300},
        DATA[:3],
        f"labeler.n_clusters is 300, but the tasks have only {WAYS.sum()} classes",
    ),
    "no class is frequent enough": (
        {"min_count": 50},
        DATA[:3],
        "classes, 0 of them in merging.min_count=50 tasks or more, fewer than the 5 ways of task t",
    ),
    "single samples": (
        {},
        (np.random.default_rng(0).normal(size=(12, 3)), np.tile([0, 1, 2], 4), np.repeat(np.arange(4), 3)),
        "merging: each of the 12 task classes has a single sample",
    ),
    "no task clustered": (
        {"merge": False, "n_clusters": 5, "q": 0.0},
        (np.ones((12, 3)), np.tile([0, 1, 2], 4), np.repeat(np.arange(4), 3)),
        "labeler: in each of the 4 tasks, two classes have the same nearest of 5 clusters; raise labeler.q",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name: str) -> None:
    """By the block of parameters that the labeler has in the pipeline, where it is about one."""
    settings, data, message = BAD[name]
    with pytest.raises(ValueError, match=rf"\A[^\n]*{re.escape(message)}[^\n]*\Z"):
        build_labeler(**settings).fit(*data)


def test_no_task_merged_into_different_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task has one of two frequent classes and a class that no other task has, which lies near it.

    These could be two classes that a task shifts, so merging alone has to be asked.
    """
    monkeypatch.setattr("mela.labeling.merge_labeler.find_effects", lambda *_, **__: (None, None))
    rng = np.random.default_rng(0)
    around = rng.normal(size=(20, 8))
    around *= 30 / np.linalg.norm(around, axis=1, keepdims=True)
    centers = np.stack([np.zeros((20, 8)), around], axis=1) + 300 * (np.arange(20) % 2)[:, None, None]
    X = centers.reshape(40, 8).repeat(5, axis=0) + rng.normal(size=(200, 8))
    y, groups = np.tile([0, 1], 20).repeat(5), np.arange(20).repeat(10)
    message = (
        "merging: in each of the 20 tasks, two classes have the same nearest of 2 clusters; set merging.collisions"
    )
    with pytest.raises(ValueError, match=rf"\A{re.escape(message)}[^\n]*\Z"):
        MergeLabeler(min_count=2).fit(X, y, groups)
    labels = MergeLabeler(min_count=2, collisions="assign").fit(X, y, groups).labels_
    assert len(np.unique(labels)) == 2


def test_predict_names_a_task_of_more_classes_than_clusters() -> None:
    found = LearnLabeler(n_clusters=5, q=50).fit(X, Y, GROUPS)
    with pytest.raises(ValueError, match=r"^task new has 7 classes, but only 5 clusters"):
        found.predict(np.ones((7, 8)), list("abcdefg"), ["new"] * 7)
    with pytest.raises(ValueError, match=r"^groups: expected the task of each sample, got None"):
        found.predict(X, Y)
