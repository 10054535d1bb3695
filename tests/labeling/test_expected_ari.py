"""The expected Rand index: its equation against scikit-learn, and its parts on clusters whose truth is known."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from mela import MergeLabeler
from mela.data.array_types import Floats, Ints
from mela.labeling.cuts import Cuts
from mela.labeling.expected_ari import expected_ari, same_share
from mela.labeling.pair_quality import pair_quality


def pairs(labels: Ints) -> np.ndarray:
    """Tell for each pair of items whether they share a label."""
    one, other = np.triu_indices(len(labels), 1)
    return labels[one] == labels[other]


@pytest.mark.parametrize("seed", range(5))
def test_the_equation_is_that_of_the_adjusted_rand_index(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 10, size=200)
    labels = np.where(rng.random(200) < 0.8, truth, rng.integers(0, 14, size=200))
    same, shared = pairs(truth), pairs(labels)
    precision = same[shared].mean()
    error = (1 - precision) / (1 - same.mean())
    expected = expected_ari(float(shared.mean()), float(error), float(same.mean()))
    assert expected == pytest.approx(adjusted_rand_score(truth, labels), abs=1e-12)


def test_without_pairs_or_with_wrong_ones_alone_nothing_is_expected() -> None:
    assert expected_ari(0.0, 0.0, 0.0) == 0
    assert expected_ari(0.0, 0.0, 0.1) == 0
    assert expected_ari(0.1, 1.0, 0.1) == 0
    assert expected_ari(0.1, 1.5, 0.1) == 0
    assert expected_ari(0.1, 0.0, 0.1) == 1


def drawn(rng: np.random.Generator, n_tasks: int, ways: int, n_classes: int) -> tuple[Ints, Ints]:
    """Return the true classes of the task classes, and the bounds of their tasks."""
    truth = np.concatenate([rng.permutation(n_classes)[:ways] for _ in range(n_tasks)])
    return truth, np.arange(0, n_tasks * ways + 1, ways)


def catches(rng: np.random.Generator, truth: Ints, starts: Ints) -> list[Cuts]:
    """Return trees of points whose classes are split at random into two or three parts; some points go astray."""
    found = []
    for pieces in (2, 3, 3):
        wrong = np.where(rng.random(len(truth)) < 0.1, rng.integers(0, 20, size=len(truth)), truth)
        parts = wrong * 3 + rng.integers(0, pieces, size=len(truth))
        points = rng.normal(size=(60, 8))[parts] * 9 + rng.normal(size=(len(truth), 8)) * 0.1
        found.append(Cuts.of(linkage(points, "average"), np.arange(len(truth)), starts))
    return found


def test_partitions_that_miss_pairs_tell_how_many_there_are() -> None:
    """Half or two thirds of the pairs are missed, by each of three independently of the others."""
    found, true = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth, starts = drawn(rng, 200, 5, 20)
        found.append(same_share(catches(rng, truth, starts), starts))
        true.append(pairs(truth).mean())
    assert np.mean(found) == pytest.approx(np.mean(true), rel=0.15)


def test_too_few_pairs_tell_nothing() -> None:
    rng = np.random.default_rng(0)
    starts = np.arange(0, 31, 3)
    cuts = [Cuts.of(linkage(rng.normal(size=(30, 4)), "average"), np.arange(30), starts) for _ in range(3)]
    assert same_share(cuts, starts) is None
    one = np.array([0, 30])
    assert same_share([Cuts.of(own.tree, np.arange(30), one) for own in cuts], one) is None


def test_some_tasks_judge_cuts_as_the_plain_loop_does() -> None:
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *rng.integers(2, 6, size=30)])
    tree = linkage(rng.normal(size=(starts[-1], 3)), "average")
    cuts, asked = Cuts.of(tree, np.arange(starts[-1]), starts), rng.random(30) < 0.5
    own = np.repeat(asked, np.diff(starts))
    bounds = np.concatenate([[0], np.cumsum(np.diff(starts)[asked])])
    heights = [0.0, *tree[:, 2]]
    assert len(cuts.shared) == len(heights) - np.diff(starts).max() + 1
    for cut, height in enumerate(heights[: len(cuts.shared)]):
        quality = pair_quality(fcluster(tree, height, "distance")[own] - 1, bounds)
        assert cuts.inside(asked)[cut] == pytest.approx(quality.shared * (1 - quality.precision))


def test_tasks_that_choose_a_cut_judge_it_too_well() -> None:
    """Without any classes, the best of all cuts looks good to those who chose it, and to nobody else."""
    own, others = [], []
    for seed in range(20):
        rng, starts = np.random.default_rng(seed), np.arange(0, 301, 5)
        cuts = Cuts.of(linkage(rng.normal(size=(300, 5)), "average"), np.arange(300), starts)
        every = np.ones(60, dtype=bool)
        own.append(cuts.inside(every)[cuts.best()] / cuts.shared[cuts.best()])
        error = cuts.error()
        assert error is not None
        others.append(error)
    assert np.mean(own) < 0.6
    assert np.mean(others) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("starts", [[0, 3], [0, 3, 4, 5]])
def test_one_task_with_pairs_cannot_be_judged_by_others(starts: list[int]) -> None:
    tree = linkage(np.random.default_rng(0).normal(size=(starts[-1], 2)), "average")
    assert Cuts.of(tree, np.arange(starts[-1]), np.array(starts)).error() is None


def people(seed: int, effect: float) -> tuple[Floats, Ints, Ints, Ints]:
    """Return samples of 120 tasks of 5 of 20 classes whose task classes scatter by an effect, and their classes."""
    rng = np.random.default_rng(seed)
    truth, _ = drawn(rng, 120, 5, 20)
    centers = rng.normal(size=(20, 16)) * 6
    means = centers[truth] + effect * rng.normal(size=(600, 16))
    X = np.repeat(means, 8, axis=0) + rng.normal(size=(4800, 16))
    return X, np.tile(np.arange(5), 120).repeat(8), np.arange(120).repeat(40), truth


@pytest.mark.slow
@pytest.mark.parametrize("effect", [0.0, 2.0, 4.0, 6.0, 12.0])
def test_what_merging_expects_is_near_what_it_reaches(effect: float) -> None:
    expected, reached = [], []
    for seed in range(3):
        X, y, groups, truth = people(seed, effect)
        labeler = MergeLabeler().fit(X, y, groups)
        expected.append(labeler.expected_ari_)
        reached.append(adjusted_rand_score(truth, labeler.class_labels_))
    assert np.mean(expected) == pytest.approx(np.mean(reached), abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("n_tasks", "ways", "n_classes"), [(200, 2, 300), (60, 5, 150), (80, 5, 200), (2, 3, 4)])
def test_rare_classes_are_not_called_wrong(n_tasks: int, ways: int, n_classes: int) -> None:
    """There are about two task classes of a class, so that hardly any pair inside tasks could have shared a cluster."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth, _ = drawn(rng, n_tasks, ways, n_classes)
        X = np.repeat(rng.normal(size=(n_classes, 16))[truth] * 6, 8, axis=0) + rng.normal(size=(8 * len(truth), 16))
        y, groups = np.tile(np.arange(ways), n_tasks).repeat(8), np.arange(n_tasks).repeat(8 * ways)
        labeler = MergeLabeler().fit(X, y, groups)
        assert adjusted_rand_score(truth, labeler.class_labels_) > 0.98
        assert labeler.expected_ari_ is None or labeler.expected_ari_ > 0.75


def test_nothing_is_expected_of_a_single_task_and_0_where_many_were_not_joined() -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(60, 4)) * 6, 8, axis=0) + rng.normal(size=(480, 4))
    y, groups = np.tile(np.arange(3), 20).repeat(8), np.arange(20).repeat(24)
    single = MergeLabeler().fit(X[:24], y[:24], groups[:24])
    assert (len(single.cluster_centers_), single.expected_ari_) == (3, None)
    alone = MergeLabeler().fit(X, y, groups)
    assert (len(alone.cluster_centers_), alone.expected_ari_) == (60, 0.0)


def test_no_more_pairs_are_right_than_are_of_one_class() -> None:
    """Where fewer are thought to be of one class, clusters are not called perfect for this."""
    assert expected_ari(0.1, 0.1, 0.02) == pytest.approx(expected_ari(0.1, 0.1, None), abs=0.01)
    assert expected_ari(0.1, 0.1, 0.02) < 0.96
