"""Tasks whose person is known: what several tasks of one person have in common counts once."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mela import MergeLabeler
from mela.errors import MelaError
from mela.labeling.clusters import of_sources
from mela.labeling.cuts import halves
from mela.labeling.merging import left_out
from mela.labeling.shifts import find_shifts, without_shifts
from mela.labeling.task_classes import ClassMeans, class_means, group_samples, with_sources
from tests.helpers.several_tasks import WAYS, Given, people


def classes_of(given: Given) -> ClassMeans:
    X, y, groups, sources, _ = given
    return class_means(with_sources(group_samples(X, np.arange(len(X)), groups, y), sources))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_few_people_with_many_tasks_each(seed: int) -> None:
    """Merging finds the classes of each person, which all lie apart from those of the others."""
    X, y, groups, sources, truth = people(seed)
    blind = MergeLabeler().fit(X, y, groups)
    labeler = MergeLabeler().fit(X, y, groups, sources)
    assert adjusted_rand_score(truth, blind.class_labels_) < 0.6
    assert adjusted_rand_score(truth, labeler.class_labels_) > 0.9
    assert labeler.effects_ is not None
    assert len(labeler.cluster_centers_) == pytest.approx(40, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("own", [0.3, 0.6])
def test_people_who_are_alike_are_found_as_without_sources(own: float) -> None:
    X, y, groups, sources, truth = people(0, persons=20, tasks=8, shift=0.0, own=own)
    labeler = MergeLabeler().fit(X, y, groups, sources)
    assert adjusted_rand_score(truth, labeler.class_labels_) > 0.95


@pytest.mark.slow
def test_a_person_for_each_task_is_what_is_taken_for_true_without_sources() -> None:
    X, y, groups, _, truth = people(0, persons=120, tasks=1)
    first, again = MergeLabeler().fit(X, y, groups), MergeLabeler().fit(X, y, groups, groups)
    assert adjusted_rand_score(first.labels_, again.labels_) == 1
    assert first.expected_ari_ == pytest.approx(again.expected_ari_)
    assert adjusted_rand_score(truth, first.class_labels_) > 0.9


def test_a_single_person_tells_nothing() -> None:
    X, y, groups, _, _ = people(0, persons=2, tasks=20)
    first, again = MergeLabeler().fit(X, y, groups), MergeLabeler().fit(X, y, groups, np.full(len(X), "ann"))
    np.testing.assert_array_equal(first.labels_, again.labels_)


@pytest.mark.slow
def test_order_and_names_make_no_difference() -> None:
    X, y, groups, sources, _ = people(1)
    first = MergeLabeler().fit(X, y, groups, sources)
    order = np.random.default_rng(0).permutation(len(X))
    again = MergeLabeler().fit(X[order], y[order], groups[order], np.array(list("bdace"))[sources[order]])
    assert adjusted_rand_score(first.labels_[order], again.labels_) == 1
    assert adjusted_rand_score(first.labels_, MergeLabeler().fit_predict(X, y, groups, sources=sources)) == 1


def test_a_pipeline_hands_sources_on() -> None:
    X, y, groups, sources, _ = people(0, persons=4, tasks=10)
    plain = MergeLabeler().fit(StandardScaler().fit_transform(X), y, groups, sources)
    with config_context(enable_metadata_routing=True):
        own = MergeLabeler().set_fit_request(groups=True, sources=True)
        routed = make_pipeline(StandardScaler(), own).fit(X, y, groups=groups, sources=sources)
    np.testing.assert_array_equal(plain.labels_, routed[-1].labels_)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        (["ann"] * 59 + ["bob"], "expected one source for all samples of task 0, got ann and bob"),
        (["ann"] * 59 + [None], "sources: expected a value for every sample, got None at position 59"),
        (["ann"] * 59, "X and sources have 60 and 59 entries"),
        ([1] * 30 + ["ann"] * 30, "sources: expected values of one type"),
    ],
)
def test_says_what_is_wrong_with_sources(sources: list[object], message: str) -> None:
    X, y, groups, _, _ = people(0, persons=1, tasks=1)
    with pytest.raises(MelaError, match=message):
        MergeLabeler().fit(X, y, groups, sources)


def test_centers_without_a_source() -> None:
    """As a plain loop over task classes computes them."""
    rng = np.random.default_rng(0)
    points, sizes = rng.normal(size=(60, 3)), rng.integers(1, 9, size=60)
    clusters, sources = rng.integers(-1, 6, size=60), rng.integers(0, 4, size=60)
    # all of one source
    sources[clusters == 5] = 2
    expected = []
    for i in range(60):
        away = np.full(6, np.inf)
        for k in range(6):
            other = clusters == k
            if clusters[i] == k:
                other &= sources != sources[i]
            if other.any():
                away[k] = ((points[i] - np.average(points[other], axis=0, weights=sizes[other])) ** 2).sum()
        expected.append(away.argmin())
    np.testing.assert_array_equal(left_out(points, sizes, clusters, sources), expected)


def test_parts_of_clusters_by_source() -> None:
    of, parts = of_sources(np.array([0, 0, 1, -1, -1, 0]), np.array([1, 0, 0, 1, 1, 1]))
    assert of.tolist() == [0, 0, 1, 1, 1]
    assert parts.tolist() == [2, 0, 1, 3, 4, 2]


def test_the_same_classes_in_all_tasks_of_a_person_are_no_shift() -> None:
    """Their mean is that of five classes, however many tasks there are."""
    rng = np.random.default_rng(0)
    persons, tasks = 40, 20
    centers = rng.normal(size=(40, 10))
    own = np.stack([rng.permutation(40)[:WAYS] for _ in range(persons)])
    truth = own.repeat(tasks, axis=0).ravel()
    means = centers[truth] + rng.normal(size=(len(truth), 10)) * 0.1
    starts, sources = np.arange(0, len(truth) + 1, WAYS), np.arange(persons).repeat(tasks)
    names = np.arange(len(starts) - 1).repeat(WAYS)
    classes = ClassMeans(task_ids=names, starts=starts, means=means, sizes=np.full(len(truth), 9), sources=sources)
    shifts, found = without_shifts(classes, truth)
    assert not len(shifts.variances)
    np.testing.assert_array_equal(found, means)
    # as if all task classes of a person were different classes
    assert len(find_shifts(means, np.arange(0, len(truth) + 1, WAYS * tasks)).variances)


def test_shifts_of_people_are_found_more_exactly_from_all_of_their_tasks() -> None:
    given = people(0, persons=40, tasks=8, own=0.0)
    classes, truth = classes_of(given), given[4]
    # the first that are drawn
    centers = np.random.default_rng(0).normal(size=(40, 24))

    def left(found: np.ndarray) -> float:
        """In the directions of the shifts."""
        rest = (found - centers[truth])[:, :6]
        return float((rest - rest.mean(axis=0)).var())

    _, by_person = without_shifts(classes, truth)
    by_task = find_shifts(classes.means, classes.starts).subtract(classes.means, classes.starts)
    assert left(by_person) < 0.5 * left(by_task)
    assert left(by_task) < 0.5 * left(classes.means)


def test_no_half_of_the_tasks_divides_a_person() -> None:
    sources = np.array([0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5])
    found = [set(sources[half]) & set(sources[~half]) for half in halves(np.full(12, 10), sources)]
    assert found == [set()] * 10
