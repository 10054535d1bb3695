"""What names say about clusters: against a plain loop, and which names say nothing."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from mela.labeling import name_gain as module
from mela.labeling.clusters import meeting_rate
from mela.labeling.memberships import Memberships
from mela.labeling.name_gain import name_gain
from mela.labeling.name_odds import Names
from mela.labeling.partition import Evidence
from mela.labeling.size_prior import evenness

WAYS, PEOPLE, CLASSES = 4, 40, 8


def some_people(seed: int, noise: float = 1.0) -> tuple[Evidence, np.ndarray]:
    """Return task classes whose noise has a deviation of its own, where that of the model is 1, and their classes."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate([rng.permutation(CLASSES)[:WAYS] for _ in range(PEOPLE)])
    starts = np.arange(0, len(truth) + 1, WAYS)
    points = (rng.normal(size=(CLASSES, 3)) * 3)[truth] + rng.normal(size=(len(truth), 3)) * noise
    evidence = Evidence(
        points=points, weights=np.ones(len(truth)), starts=starts, between=np.full(3, 9.0), rate=meeting_rate(starts)
    )
    return evidence, truth


def names_of(words: np.ndarray) -> Names:
    return Names(groups=np.unique(words, return_inverse=True)[1], owners=np.arange(PEOPLE).repeat(WAYS))


def numbers() -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.concatenate([CLASSES + rng.permutation(WAYS) for _ in range(PEOPLE)])


def test_gains_are_those_of_a_loop_over_people(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence, clusters = some_people(0)
    names = names_of(np.where(np.arange(len(clusters)) % 3 == 0, numbers(), clusters))
    monkeypatch.setattr(module, "NUMBERS", 500)
    gains = module._gains(evidence, clusters, names)
    power, concentration = 4, 5
    gamma = evenness(np.bincount(clusters))
    rank = np.random.default_rng(0).permutation(PEOPLE) * module.TURNS // PEOPLE
    expected = np.zeros(names.n_groups)
    for row in range(len(clusters)):
        others = np.arange(len(clusters)) != row
        model = Memberships.of(
            evidence.points[others], evidence.weights[others], clusters[others], CLASSES, evidence.between, gamma
        )
        variance = 1 + 1 / (model.weights[:, None] + 1 / evidence.between)
        means = model.sums / (model.weights[:, None] + 1 / evidence.between)
        density = -((evidence.points[row] - means) ** 2 / variance + np.log(variance)).sum(axis=1) / 2
        probable = softmax(np.log(model.counts + gamma) + module.POWERS[power] * density)
        before = rank[names.owners] < rank[names.owners[row]]
        if not rank[names.owners[row]]:
            continue
        a, share = module.CONCENTRATIONS[concentration], names.shares[names.groups[row]]
        same = before & (names.groups == names.groups[row])
        ratios = [
            (np.sum(same & (clusters == v)) / share + a) / (np.sum(before & (clusters == v)) + a)
            for v in range(CLASSES)
        ]
        expected[names.groups[row]] += np.log(probable @ ratios)
    np.testing.assert_allclose(gains[power, concentration], expected, atol=1e-8)


def test_numbers_tell_nothing_where_words_tell_of_classes() -> None:
    evidence, clusters = some_people(1)
    words = np.where(np.arange(PEOPLE).repeat(WAYS) % 2, numbers(), clusters)
    found = name_gain(evidence, clusters, names_of(words), CLASSES + WAYS)
    np.testing.assert_array_equal(found.names.groups < 0, words >= CLASSES)
    assert found.names.n_groups == CLASSES
    assert found.gain > 50
    assert found.names.concentration < 1


def test_nothing_is_gained_by_numbers_alone() -> None:
    evidence, clusters = some_people(1)
    assert name_gain(evidence, clusters, names_of(numbers()), WAYS).gain < np.log(len(clusters))


def test_a_word_for_a_part_of_a_cluster_tells_something() -> None:
    """Two classes look the same and are taken for one, so that one in two words for it is right."""
    evidence, truth = some_people(1)
    points, last = evidence.points.copy(), truth == CLASSES - 1
    points[last] += points[truth == CLASSES - 2].mean(axis=0) - points[last].mean(axis=0)
    found = name_gain(replace(evidence, points=points), np.minimum(truth, CLASSES - 2), names_of(truth), CLASSES)
    assert found.names.n_groups == CLASSES


def test_the_gain_is_the_same_if_asked_again_without_what_is_silent() -> None:
    evidence, clusters = some_people(1)
    words = np.where(np.arange(PEOPLE).repeat(WAYS) % 2, numbers(), clusters)
    found = name_gain(evidence, clusters, names_of(words), CLASSES + WAYS)
    again = name_gain(evidence, clusters, found.names, CLASSES + WAYS)
    assert again.gain == pytest.approx(found.gain)
    alone = name_gain(evidence, clusters, found.names, CLASSES)
    assert alone.gain > found.gain, "nothing was chosen, which is cheaper"


def test_features_that_are_too_sure_of_themselves_get_a_small_power() -> None:
    """Words tell that people differ four times as much as their clusters say."""
    powers = []
    for noise in (1.0, 4.0):
        evidence, truth = some_people(2, noise)
        powers.append(name_gain(evidence, truth, names_of(truth), CLASSES).power)
    assert powers[0] > 0.5
    assert powers[1] < 0.2


def test_the_share_of_groups_that_tell_something_is_the_most_probable_one() -> None:
    for gains in (np.array([3.0, 8.0, -2.0, 0.5, -4.0, -1.0, 12.0, 2.0]), np.array([0.1, -0.3, 0.2, -0.1])):
        n = len(gains)
        best = minimize_scalar(
            lambda share, gains=gains: -np.log(share * np.exp(gains) + 1 - share).sum(),
            bounds=(1 / (n + 1), n / (n + 1)),
            method="bounded",
        )
        assert module._telling(gains) == pytest.approx(best.x, abs=1e-3)
    assert module._telling(np.full(9, -0.02)) == pytest.approx(0.1), "of ten, one might tell something"
    assert module._telling(np.full(9, 50.0)) == pytest.approx(0.9), "of ten, one might tell nothing"
