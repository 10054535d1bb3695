"""Names as evidence: what they change where people agree on them, and that nothing changes where they do not."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mela import MergeLabeler
from mela.errors import MelaError
from mela.labeling import named_clusters
from mela.labeling.name_odds import Names
from mela.labeling.partition import Evidence
from mela.labeling.task_classes import class_means
from tests.helpers.several_tasks import SAMPLES, WAYS, Given, people

WORDS = np.array(["".join(np.random.default_rng(seed).choice(list("abcdefghijklmnop"), 6)) for seed in range(120)])


@dataclass(frozen=True)
class Asked:
    """Hold tasks whose people look so different that features alone tell little, and what is found without names."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    truth: np.ndarray
    plain: MergeLabeler

    found: dict[tuple[str, ...], MergeLabeler] = field(default_factory=dict)

    def fit(self, names: np.ndarray) -> MergeLabeler:
        """Fit once for the same names."""
        key = tuple(names.tolist())
        if key not in self.found:
            self.found[key] = MergeLabeler().fit(self.X, self.y, self.groups, names=names.repeat(SAMPLES))
        return self.found[key]

    def ari(self, labeler: MergeLabeler) -> float:
        return float(adjusted_rand_score(self.truth, labeler.class_labels_))

    @property
    def tasks(self) -> np.ndarray:
        return np.arange(len(self.truth)) // WAYS


@pytest.fixture(scope="module")
def asked() -> Asked:
    X, y, groups, _, truth = people(0, persons=120, tasks=1, shift=0.0, own=1.1)
    return Asked(X, y, groups, truth, MergeLabeler().fit(X, y, groups))


def numbers(given: Asked) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.concatenate([rng.permutation(WAYS) for _ in range(len(given.truth) // WAYS)]).astype(str)


def private(given: Asked) -> np.ndarray:
    return np.array([f"{WORDS[row % 120]}{row}x{WORDS[row // 120]}" for row in range(len(given.truth))])


def two_languages(given: Asked) -> np.ndarray:
    return WORDS[given.truth + 40 * (given.tasks % 2)]


def half_numbers(given: Asked) -> np.ndarray:
    return np.where(given.tasks % 2, WORDS[given.truth], numbers(given))


def test_names_that_all_agree_on_are_the_classes(asked: Asked) -> None:
    assert asked.ari(asked.plain) < 0.7
    found = asked.fit(WORDS[asked.truth])
    assert asked.ari(found) > 0.95


@pytest.mark.parametrize("write", [two_languages, half_numbers])
def test_names_that_some_agree_on_help(asked: Asked, write: Callable[[Asked], np.ndarray]) -> None:
    names = write(asked)
    found = asked.ari(asked.fit(names))
    assert found > asked.ari(asked.plain) + 0.15
    assert found > adjusted_rand_score(asked.truth, np.unique(names, return_inverse=True)[1]) + 0.05


@pytest.mark.parametrize("write", [numbers, private])
def test_names_that_nobody_agrees_on_change_nothing(asked: Asked, write: Callable[[Asked], np.ndarray]) -> None:
    found = asked.fit(write(asked))
    assert found.names_ is None
    np.testing.assert_array_equal(found.class_labels_, asked.plain.class_labels_)
    np.testing.assert_array_equal(found.round_labels, asked.plain.round_labels)
    assert found.expected_ari_ == asked.plain.expected_ari_


def test_numbers_of_half_of_the_people_tell_nothing(asked: Asked) -> None:
    found = asked.fit(half_numbers(asked)).names_
    assert found is not None
    words = asked.tasks % 2 == 1
    assert not (found.names.groups[~words] >= 0).any()
    assert (found.names.groups[words] >= 0).mean() > 0.95


def test_rare_words_do_not_outweigh_those_that_many_write(asked: Asked) -> None:
    """Six of ten labels have a word that two people use, for any class."""
    rng = np.random.default_rng(0)
    rare = rng.permutation(len(asked.truth))[: 6 * len(asked.truth) // 10]
    names = WORDS[asked.truth]
    names[rare] = np.array([f"{number}" for number in range(len(rare) // 2)]).repeat(2)
    assert asked.ari(asked.fit(names)) > asked.ari(asked.plain) + 0.15


def test_silent_classes_follow_their_features() -> None:
    """A cluster is divided in two, another one has no words at all, and a class of no cluster stays there."""
    points = np.array([[-3.0], [-3.1], [3.0], [3.1], [-2.9], [2.9], [0.0], [0.1], [3.0]])
    clusters = np.array([0, 0, 0, 0, 0, 0, 1, 1, -1])
    parts = np.array([0, 0, 2, 2, 0, 0, 1, 1, -1])
    silent = np.array([False] * 4 + [True] * 4 + [False])
    evidence = Evidence(points=points, weights=np.ones(9), starts=np.arange(10), between=np.full(1, 9.0), rate=0.1)
    found = named_clusters._placed(evidence, clusters, parts, silent, 1.0)
    np.testing.assert_array_equal(found, [0, 0, 2, 2, 0, 2, 1, 1, -1])


def test_which_words_people_use_makes_no_difference(asked: Asked) -> None:
    first, again = asked.fit(WORDS[asked.truth]), asked.fit(WORDS[::-1][asked.truth])
    assert adjusted_rand_score(first.class_labels_, again.class_labels_) == 1


def test_words_that_are_often_wrong_do_no_harm() -> None:
    """Features tell the classes well here, and a third of the names are those of other classes."""
    X, y, groups, _, truth = people(1, persons=120, tasks=1, shift=0.0, own=0.3)
    rng = np.random.default_rng(0)
    names = WORDS[np.where(rng.random(len(truth)) < 1 / 3, rng.integers(40, size=len(truth)), truth)].repeat(SAMPLES)
    plain, found = MergeLabeler().fit(X, y, groups), MergeLabeler().fit(X, y, groups, names=names)
    assert found.names_ is not None
    one, other = (adjusted_rand_score(truth, labeler.class_labels_) for labeler in (plain, found))
    assert other >= one > 0.9


def test_features_divide_what_is_called_alike_by_chance() -> None:
    """One word for two classes does not make them one."""
    X, y, groups, _, truth = people(1, persons=120, tasks=1, shift=0.0, own=0.3)
    found = MergeLabeler().fit(X, y, groups, names=WORDS[truth // 2].repeat(SAMPLES))
    assert found.names_ is not None
    assert adjusted_rand_score(truth, found.class_labels_) > 0.9
    assert adjusted_rand_score(truth, truth // 2) < 0.8


def test_clusters_that_are_too_coarse_are_divided_by_names() -> None:
    """Of few people, features alone make a few large clusters."""
    X, y, groups, _, truth = people(0, persons=60, tasks=1, shift=0.0, own=1.1)
    plain = MergeLabeler().fit(X, y, groups)
    found = MergeLabeler().fit(X, y, groups, names=WORDS[truth].repeat(SAMPLES))
    assert plain.corrections_.clusters.max() < 20
    assert adjusted_rand_score(truth, plain.corrections_.clusters) < 0.3
    assert adjusted_rand_score(truth, found.class_labels_) > 0.97, "as new coordinates show, and the first ones do not"


@pytest.mark.parametrize("write", [two_languages, half_numbers])
def test_names_make_certainties_better(asked: Asked, write: Callable[[Asked], np.ndarray]) -> None:
    """By the logarithmic score of each label's certainty, whether most of its cluster are of its class."""
    names = write(asked).repeat(SAMPLES)
    found = MergeLabeler(soft=True).fit(asked.X, asked.y, asked.groups, names=names)
    clusters = found.class_labels_
    of_clusters = [np.bincount(asked.truth[clusters == cluster]).argmax() for cluster in range(clusters.max() + 1)]
    right = np.array(of_clusters)[clusters] == asked.truth

    def score() -> float:
        own = np.asarray(found.class_weights_[np.arange(len(clusters)), clusters]).ravel().clip(1e-3, 1 - 1e-3)
        return float(np.log(np.where(right, own, 1 - own)).mean())

    with_names = score()
    found._names = None
    found._weigh(found.task_classes_, class_means(found.task_classes_), None)
    assert with_names > score() + 0.05


def test_pairs_inside_tasks_do_not_judge_clusters_that_keep_them_apart(asked: Asked) -> None:
    """Clusters by half of the names are not all right, although none has two classes of a task."""
    found = asked.fit(half_numbers(asked))
    pairs = np.triu_indices(len(asked.truth), 1)
    together = np.equal.outer(found.class_labels_, found.class_labels_)[pairs]
    right = float(np.equal.outer(asked.truth, asked.truth)[pairs][together].mean())
    assert right < 0.95
    assert found.pair_quality_.precision < right + 2 * found.pair_quality_.precision_error


def test_what_people_say_outweighs_names(asked: Asked) -> None:
    names = WORDS[asked.truth]
    rows = np.flatnonzero(asked.truth == asked.truth[0])[:2]
    one, other = ((int(asked.tasks[row]), int(row % WAYS)) for row in rows)
    given = {"names": names.repeat(SAMPLES), "cannot_link": [(one, other)]}
    found = MergeLabeler().fit(asked.X, asked.y, asked.groups, **given)
    assert found.class_labels_[rows[0]] != found.class_labels_[rows[1]]
    assert asked.ari(found) > 0.9


def test_ten_tasks_of_one_person_count_as_one() -> None:
    """Each person numbers classes in one way for all tasks, so that numbers agree within a person alone."""
    given: Given = people(0)
    X, y, groups, sources, truth = given
    ways = np.random.default_rng(0).permuted(np.tile(np.arange(40), (5, 1)), axis=1)
    names = ways[np.arange(5).repeat(len(truth) // 5), truth].astype(str)
    plain = MergeLabeler().fit(X, y, groups, sources)
    found = MergeLabeler().fit(X, y, groups, sources, names=names.repeat(SAMPLES))
    assert adjusted_rand_score(truth, found.class_labels_) >= adjusted_rand_score(truth, plain.class_labels_)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (lambda n: np.array(["a"] * (n - 1)), "X and names have 7200 and 7199 entries; give one of names for each"),
        (
            lambda n: np.array(["a"] * 3 + ["b"] * (n - 3)),
            "one name for all samples of the label 0 of task 0, got 'a' and 'b'; give each",
        ),
        (lambda n: [None, *["a"] * (n - 1)], "names: expected a value for every sample, got None at position 0"),
    ],
)
def test_names_that_are_wrong(asked: Asked, names: Callable[[int], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MergeLabeler().fit(asked.X, asked.y, asked.groups, names=names(len(asked.X)))


def test_too_many_clusters_are_told(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named_clusters, "ALL_PAIRS", 10)
    asked.found.clear()
    with pytest.raises(MelaError, match=r"names: expected at most 10 clusters .*, got \d+; leave names out"):
        asked.fit(WORDS[asked.truth])
    assert asked.fit(numbers(asked)).names_ is None, "these change nothing, however many there are"


def test_clusters_that_join_nothing_cannot_judge_names() -> None:
    means, starts = np.random.default_rng(0).normal(size=(20, 3)), np.arange(0, 21, 5)
    names = iter([Names(groups=np.arange(20) % 5, owners=np.arange(20) // 5)])
    assert named_clusters.use_names(np.arange(20), means, starts, names) is None
