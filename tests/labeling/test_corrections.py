"""What people say of task classes: it is kept to exactly, it changes whole clusters, and contradictions are named."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from mela import LearnLabeler, MergeLabeler
from mela.errors import MelaError
from mela.labeling.corrections import Corrections
from mela.labeling.links import Links
from mela.labeling.pair_quality import pair_quality
from mela.labeling.questions import questions
from tests.helpers.labelers import tasks

NAMES = [("anna", "pilz"), ("anna", "ahorn"), ("ben", "mushroom"), ("ben", "maple"), ("cleo", "champignon")]
STARTS = np.array([0, 2, 4, 5])


def links_of(same: list[tuple[int, int]], different: list[tuple[int, int]], starts: np.ndarray) -> Links:
    pairs = [np.array(rows, dtype=np.int64).reshape(-1, 2) for rows in (same, different)]
    return Links(same=pairs[0], different=pairs[1], starts=starts)


def people(seed: int, *, n_tasks: int = 40, n_classes: int = 8, ways: int = 3) -> tuple[np.ndarray, ...]:
    """Means of task classes, bounds of tasks, true classes, and clusters with mistakes of all kinds."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate([rng.permutation(n_classes)[:ways] for _ in range(n_tasks)])
    means = np.eye(n_classes)[truth] * 4 + rng.normal(size=(len(truth), n_classes)) * 0.7
    # 1 and 2 share a cluster, half of 3 has one of its own, and one in twenty is anywhere
    clusters = np.where(truth == 2, 1, truth)
    clusters = np.where((truth == 3) & (rng.random(len(truth)) < 0.5), n_classes, clusters)
    lost = rng.random(len(truth)) < 0.05
    clusters[lost] = rng.integers(0, n_classes, lost.sum())
    return means, np.arange(0, len(truth) + 1, ways), truth, np.unique(clusters, return_inverse=True)[1]


def corrections(means: np.ndarray, starts: np.ndarray, clusters: np.ndarray) -> Corrections:
    wrong = 1 - pair_quality(clusters, starts).precision
    return Corrections.of(clusters, means, starts, wrong, wrong, None)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(0, 25))
def test_every_answer_is_kept_to_exactly(seed: int, n: int) -> None:
    means, starts, truth, clusters = people(seed % 7)
    rng = np.random.default_rng(seed)
    clusters[rng.random(len(truth)) < 0.1] = -1
    asked = [tuple(rng.choice(len(truth), 2, replace=False).tolist()) for _ in range(n)]
    # random pairs are hardly ever of one class
    asked += [tuple(rng.choice(np.flatnonzero(truth == kind), 2, replace=False)) for kind in rng.integers(0, 8, n)]
    same = [pair for pair in asked if truth[pair[0]] == truth[pair[1]]]
    links = links_of(same, [pair for pair in asked if pair not in same], starts)
    found = corrections(means, starts, clusters).after(links)
    assert (found[links.same[:, 0]] == found[links.same[:, 1]]).all()
    assert (found[links.different[:, 0]] != found[links.different[:, 1]]).all()
    named = np.unique(np.array(asked, dtype=np.int64))
    assert (found[named] >= 0).all()
    for task in np.unique(named // 3):
        own = found[3 * task : 3 * task + 3]
        assert len(set(own.tolist())) == 3
        assert (own >= 0).all(), "else the task would get no labels"
    assert set(found[found >= 0].tolist()) == set(range(found.max() + 1)), "numbers without gaps"
    assert ((found >= 0) | (clusters < 0)).all(), "nobody loses a cluster"


def test_clusters_stay_as_they_are_where_nobody_says_anything() -> None:
    means, starts, _, clusters = people(0)
    assert (corrections(means, starts, clusters).after(Links.nothing(starts)) == clusters).all()


def test_one_answer_joins_or_divides_whole_clusters() -> None:
    means, starts, truth, clusters = people(0)
    own = corrections(means, starts, clusters)
    halves = [np.flatnonzero((truth == 3) & (clusters == kind)) for kind in np.unique(clusters[truth == 3])]
    first, second = sorted(halves, key=len)[-2:]
    joined = own.after(links_of([(first[0], second[0])], [], starts))
    assert len(set(joined[np.concatenate([first, second])].tolist())) == 1

    mixed = clusters[np.flatnonzero(truth == 1)[0]]
    one, two = (np.flatnonzero((truth == kind) & (clusters == mixed)) for kind in (1, 2))
    divided = own.after(links_of([], [(one[0], two[0])], starts))
    assert len(set(divided[one].tolist())) == len(set(divided[two].tolist())) == 1
    assert divided[one[0]] != divided[two[0]]


@pytest.mark.parametrize("wrong", [0, 2, 4, 6, 7])
def test_a_task_class_in_a_wrong_cluster_moves_alone(wrong: int) -> None:
    means, starts, truth, _ = people(0)
    clusters = truth.copy()
    lost = int(np.flatnonzero(truth == 5)[0])
    clusters[lost] = wrong
    there = int(np.flatnonzero(truth == 5)[1])
    for pair in ((lost, there), (there, lost)):
        found = corrections(means, starts, clusters).after(links_of([pair], [], starts))
        assert adjusted_rand_score(truth, found) == 1


@pytest.mark.parametrize("settings", [{"min_count": 2}, {"min_count": 3, "collisions": "assign"}])
def test_links_hold_where_rare_classes_are_dropped(settings: dict[str, Any]) -> None:
    X, y, groups = tasks(0, n_classes=14, n_tasks=30)
    rows = [(task, label) for task in range(30) for label in range(3)]
    rng = np.random.default_rng(0)
    for _ in range(40):
        (a, b) = (int(row) for row in rng.choice(90, 2, replace=False))
        if a // 3 == b // 3:
            continue
        for name in ("must_link", "cannot_link"):
            links = {name: [(rows[a], rows[b])]}
            labels = MergeLabeler(**settings).fit(X, y, groups, **links).class_labels_
            assert labels[a] >= 0
            assert labels[b] >= 0
            assert (labels[a] == labels[b]) == (name == "must_link")


@pytest.mark.parametrize("labeler", [MergeLabeler(soft=True), LearnLabeler(n_clusters=12, soft=True)])
def test_soft_labels_are_sure_of_what_somebody_says(labeler: MergeLabeler | LearnLabeler) -> None:
    X, y, groups = tasks(0)
    labeler.fit(X, y, groups, must_link=[((0, 0), (1, 0))], cannot_link=[((2, 1), (3, 2))])
    for row in (0, 3, 7, 11):
        own = labeler.class_weights_[[row]].toarray()[0]
        assert own[labeler.class_labels_[row]] == own.sum() == 1
    np.testing.assert_allclose(labeler.class_weights_.sum(axis=1), labeler.class_labels_ >= 0)


def test_links_that_leave_too_few_classes_are_refused() -> None:
    links = links_of([(0, 3)], [], np.array([0, 3, 6]))
    with pytest.raises(
        MelaError, match="links: they leave 2 classes, fewer than the 3 labels of one task; take one of 1"
    ):
        links.require_ways(np.array([0, 1, 1, 0, 1, 1]))


def test_answers_to_chosen_questions_find_the_truth() -> None:
    means, starts, truth, clusters = people(1)
    own = corrections(means, starts, clusters)
    said: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    before = found = own.after(Links.nothing(starts))
    for _ in range(40):
        links = links_of(said[True], said[False], starts)
        found = own.after(links)
        question = next(questions(own, links, found))
        pair = (question.one, question.other)
        assert pair not in said[True] + said[False], "nothing is asked twice"
        assert not links.tell_apart(np.array(pair[:1]), np.array(pair[1:])), "and nothing that is known"
        said[bool(truth[pair[0]] == truth[pair[1]])].append(pair)
    assert adjusted_rand_score(truth, before) < 0.85
    assert adjusted_rand_score(truth, found) > 0.97


def test_a_question_is_worth_what_its_answer_is_expected_to_change() -> None:
    means, starts, _, clusters = people(2)
    own = corrections(means, starts, clusters)
    asked = list(questions(own, Links.nothing(starts), clusters))
    worths = [question.worth for question in asked]
    assert worths == sorted(worths, reverse=True)
    for question in asked:
        one, other = question.groups.one, question.groups.other
        assert question.one in one
        assert question.other in other
        assert (clusters[one[0]] == clusters[other[0]]) == question.groups.joined
        pairs = len(one) * len(other)
        most = pairs if len(one) > 1 or question.groups.joined else pairs + (clusters == clusters[one[0]]).sum()
        assert 0 <= question.worth <= most
        assert 0 <= question.same <= 1


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (
            [(0, 2, True), (2, 4, True), (4, 0, False)],
            "line 4: 'champignon' of task 'cleo' and 'pilz' of task 'anna' are said to differ, but 'champignon' of "
            "task 'cleo' is 'mushroom' of task 'ben' (line 3) and 'mushroom' of task 'ben' is 'pilz' of task 'anna' "
            "(line 2); correct one of these",
        ),
        (
            [(0, 2, True), (2, 1, True)],
            "'pilz' of task 'anna' and 'ahorn' of task 'anna' differ, since they are labels of one task, but 'pilz' "
            "of task 'anna' is 'mushroom' of task 'ben' (line 2) and 'mushroom' of task 'ben' is 'ahorn' of task "
            "'anna' (line 3); correct it",
        ),
        (
            [(3, 3, False)],
            "line 2: 'maple' of task 'ben' and 'maple' of task 'ben' are said to differ, but they are the same label; "
            "correct one of these",
        ),
    ],
)
def test_contradictions_are_named(said: list[tuple[int, int, bool]], message: str) -> None:
    from mela.labeling.links import Said

    given = [Said(NAMES[a], NAMES[b], same, f"line {row}") for row, (a, b, same) in enumerate(said, start=2)]
    with pytest.raises(MelaError) as error:
        Links.of(given, NAMES, STARTS)
    assert str(error.value) == message


@pytest.mark.parametrize("labeler", [MergeLabeler(), LearnLabeler(n_clusters=12), LearnLabeler(8, collisions="assign")])
def test_labelers_keep_to_links(labeler: MergeLabeler | LearnLabeler) -> None:
    X, y, groups = tasks(0)
    plain = labeler.fit(X, y, groups).class_labels_.copy()
    rows = [(task, label) for task in range(40) for label in range(3)]
    # what contradicts the labels: two of one cluster differ, and two of different ones are one class
    used = [row for row in range(len(rows)) if plain[row] >= 0]
    apart = next(pair for pair in combinations(used, 2) if plain[pair[0]] == plain[pair[1]])
    together = next(
        pair
        for pair in combinations(used[::-1], 2)
        if plain[pair[0]] != plain[pair[1]] and pair[0] // 3 != pair[1] // 3 and not {*pair} & {*apart}
    )
    links = {name: [(rows[a], rows[b])] for name, (a, b) in (("must_link", together), ("cannot_link", apart))}
    found = labeler.fit(X, y, groups, **links).class_labels_
    assert found[together[0]] == found[together[1]] >= 0
    assert found[apart[0]] != found[apart[1]]
    assert (found[[*together, *apart]] >= 0).all(), "a task that somebody names keeps its labels"
    assert labeler.cluster_centers_.shape == (found.max() + 1, X.shape[1])
    assert (labeler.fit(X, y, groups).class_labels_ == plain).all(), "and the next fit knows nothing of them"


def test_a_link_may_name_only_labels_that_are_there() -> None:
    X, y, groups = tasks(0)
    for link, message in [
        (((0, 0), (99, 1)), "must_link[0]: expected a task with labels to be inferred, got 99; correct its name"),
        (((0, 7), (1, 1)), "must_link[0]: expected a label of its task, got 7, while task 0 has 0, 1, 2; correct"),
        ((0, 7, 1, 1), "must_link[0]: expected ((task, label), (task, label)), got (0, 7, 1, 1); give such pairs"),
    ]:
        with pytest.raises(ValueError, match="must_link") as error:
            MergeLabeler().fit(X, y, groups, must_link=[link])
        assert message in str(error.value)
