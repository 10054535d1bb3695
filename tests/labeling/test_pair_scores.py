"""Scores of pairs, against the plain loop over pairs of two tasks, and what they are for."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from mela import MergeLabeler
from mela.labeling import pair_scores
from mela.labeling.cuts import Cuts
from mela.labeling.pair_scores import CERTAIN, PairScores, SquaredDistances, _strength
from mela.labeling.space import noise_of
from mela.labeling.task_classes import class_means
from mela.labeling.trees import Noise, TaskClasses
from studies.labels.cameras import simulated


def drawn(owners: np.ndarray, seed: int = 0, features: int = 4) -> np.ndarray:
    """Points of which those of an owner share a shift and a scale."""
    rng = np.random.default_rng(seed)
    shifts, scales = rng.normal(size=(owners.max() + 1, features)), np.exp(rng.normal(size=owners.max() + 1))
    return shifts[owners] + scales[owners][:, None] * rng.normal(size=(len(owners), features))


def plain(points: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """The scores as the module describes them, one pair after the other; nan for points and themselves."""
    n, distances = len(points), ((points[:, None] - points) ** 2).sum(axis=2)
    pairs = {(i, j): tuple(sorted((int(owners[i]), int(owners[j])))) for i in range(n) for j in range(i + 1, n)}
    groups: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for pair, whose in pairs.items():
        groups.setdefault(whose, []).append(pair)
    values = {whose: np.array([distances[pair] for pair in own]) for whose, own in groups.items()}
    apart = [own for whose, own in values.items() if whose[0] != whose[1]]
    strength = _strength(
        np.array([((own - own.mean()) ** 2).sum() for own in apart]), np.array([len(own) - 1.0 for own in apart])
    )
    found = np.full((n, n), np.nan)
    for inside in (True, False):
        kind = [own for whose, own in values.items() if (whose[0] == whose[1]) == inside]
        everything = np.concatenate(kind)
        common = sum(((own - own.mean()) ** 2).sum() for own in kind) / sum(len(own) - 1 for own in kind)
        of_means = sum(len(own) * (own.mean() - everything.mean()) ** 2 for own in kind) / len(everything)
        varied = max(0.0, of_means - common * len(kind) / len(everything))
        for whose, own in groups.items():
            if (whose[0] == whose[1]) != inside:
                continue
            count = len(own) - 1
            variance = (values[whose].var() * len(own) + strength * common) / (count + strength)
            for i, j in own:
                others = [distances[pair] for pair in own if pair != (i, j)]
                weight = varied / (varied + common / count) if count else 0.0
                mean = weight * (np.mean(others) if count else 0.0) + (1 - weight) * everything.mean()
                error = weight**2 * variance / max(count, 1) + varied * (1 - weight) ** 2
                found[i, j] = found[j, i] = (distances[i, j] - mean) / np.sqrt(variance + error)
    return found


def test_distances_of_pairs_are_the_same_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    points = drawn(np.repeat(np.arange(6), 4))
    first, second = np.triu_indices(len(points), 1)
    distances = SquaredDistances(points)
    wanted = distances.between(first, second)
    assert wanted == pytest.approx(pdist(points, "sqeuclidean"), rel=1e-12)
    monkeypatch.setattr(pair_scores, "PAIRS", 7)
    assert distances.between(first, second).tolist() == wanted.tolist()


OWNERS = [np.repeat(np.arange(6), 4), np.array([0, 0, 1, 1, 1, 2, 3, 3, 3, 3, 4, 4])]


@pytest.mark.parametrize("owners", OWNERS)
@pytest.mark.parametrize("block", [5, 512])
def test_as_the_plain_loop(owners: np.ndarray, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_scores, "BLOCK", block)
    points = drawn(owners)
    scores, expected = PairScores.of_owners(SquaredDistances(points), owners), plain(points, owners)
    apart = ~np.eye(len(points), dtype=bool)
    np.testing.assert_allclose(scores.of(np.arange(len(points)))[apart], expected[apart], rtol=1e-9, atol=1e-9)
    first, second = np.nonzero(apart)
    np.testing.assert_allclose(scores.between(first, second), expected[first, second], rtol=1e-9, atol=1e-9)


def test_place_size_order_and_names_make_no_difference() -> None:
    owners = np.repeat(np.arange(8), 5)
    points, rng = drawn(owners), np.random.default_rng(1)
    found = PairScores.of_owners(SquaredDistances(points), owners).of(np.arange(40))
    mixed, names = rng.permutation(40), rng.permutation(8)
    again = PairScores.of_owners(SquaredDistances(7 + 3 * points[mixed]), names[owners[mixed]]).of(np.arange(40))
    apart = ~np.eye(40, dtype=bool)
    np.testing.assert_allclose(again[apart], found[np.ix_(mixed, mixed)][apart], atol=1e-6)


@pytest.mark.parametrize(
    "owners",
    [np.array([0, 1]), np.array([0, 0, 1]), np.arange(5), np.repeat(np.arange(3), 2), np.zeros(4, dtype=np.int64)],
)
@pytest.mark.parametrize("size", [0.0, 1.0, 1e60])
def test_few_pairs_and_equal_points_have_finite_scores(owners: np.ndarray, size: float) -> None:
    scores = PairScores.of_owners(SquaredDistances(size * drawn(owners)), owners).of(np.arange(len(owners)))
    assert np.isfinite(scores[~np.eye(len(owners), dtype=bool)]).all()


@pytest.mark.parametrize("strength", [4.0, 20.0])
def test_how_much_variances_differ_is_found(strength: float) -> None:
    rng = np.random.default_rng(0)
    freedom = rng.choice([3.0, 24.0], size=200_000)
    variances = strength / rng.chisquare(strength, size=len(freedom))
    assert _strength(variances * rng.chisquare(freedom), freedom) == pytest.approx(strength, rel=0.1)
    # where they do not differ, the common variance is as good as certain
    assert _strength(rng.chisquare(freedom), freedom) > 200
    assert _strength(np.array([1.0]), np.array([3.0])) == CERTAIN


def test_wrong_pairs_share_clusters_inside_tasks_as_often_as_elsewhere() -> None:
    """Without scores, clusters look far worse than they are, since the images of a person are alike."""
    samples, truth = simulated(gain=0.8, objects=0.0, seed=0)
    classes = class_means(samples)
    noise = Noise(*noise_of(samples, classes))
    tasks = TaskClasses(means=classes.means, fragments=np.arange(600), starts=classes.starts)
    scored = tasks.with_scores()
    assert scored is not None

    def excess(kind: TaskClasses) -> float:
        cuts, cut = kind.judged(kind.views([noise])[0]).cuts, 600 - 60
        clusters = cuts.clusters(cut)
        wrong = np.equal.outer(clusters, clusters)[np.not_equal.outer(truth, truth)].mean()
        return float(cuts.inside(np.ones(120, dtype=bool))[cut] / wrong)

    assert excess(tasks) > 3
    assert 0.5 < excess(scored) < 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_classes_are_found_behind_cameras_that_shift_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    samples, truth = simulated(gain=0.8, objects=0.0, seed=seed)
    labels = MergeLabeler().fit_tasks(samples).class_labels_
    assert adjusted_rand_score(truth, labels) > 0.4
    monkeypatch.setattr(TaskClasses, "with_scores", lambda self: None)
    without = MergeLabeler().fit_tasks(samples).class_labels_
    assert adjusted_rand_score(truth, without) < 0.35


def test_fragments_of_several_tasks_have_no_scores() -> None:
    tasks = TaskClasses(means=np.eye(4), fragments=np.array([0, 1, 0, 2]), starts=np.array([0, 2, 4]))
    assert tasks.with_scores() is None


def test_a_cut_is_judged_by_tasks_that_have_not_chosen_it() -> None:
    """Where tasks agree, they judge as those that choose do; noise looks good to these alone."""
    rng = np.random.default_rng(0)
    truth = np.concatenate([rng.permutation(10)[:4] for _ in range(60)])
    starts = np.arange(0, 241, 4)
    clear = TaskClasses(means=np.eye(10)[truth], fragments=np.arange(240), starts=starts)
    cuts = clear.judged(np.not_equal.outer(truth, truth)[np.triu_indices(240, 1)] * 1.0).cuts
    assert cuts.held_out() == pytest.approx(cuts.matches(np.ones(60, dtype=bool)).max(), abs=0.02)
    noise = clear.judged(rng.random(240 * 239 // 2)).cuts
    assert noise.held_out() < noise.matches(np.ones(60, dtype=bool)).max()
    assert Cuts.of(noise.tree, np.arange(240), np.array([0, 120, 240])).held_out() > -np.inf
    alone = np.arange(241)
    assert Cuts.of(noise.tree, np.arange(240), alone).held_out() == -np.inf
