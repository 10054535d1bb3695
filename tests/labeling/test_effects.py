"""Clusters of people who differ: on tasks whose classes are known, and what must make no difference."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score

from mela import MergeLabeler
from mela.labeling.cuts import Cuts
from mela.labeling.diagnostics import merges_table, remark
from mela.labeling.effects import find_effects
from mela.labeling.labeler_files import load_labeler, save_labeler
from mela.labeling.pair_quality import PairQuality, collisions, pair_quality
from mela.labeling.round_labels import labels_so_far
from mela.labeling.space import noise_of, space_of
from mela.labeling.task_classes import ClassMeans, TaskSamples, class_means, group_samples
from mela.labeling.trees import Found, Noise, TaskClasses
from mela.labeling.unseen_tasks import place_labels

WAYS, SAMPLES = 5, 20
DIFFER = "people differ: their task classes lie further apart than their samples tell, which the clusters allow for"
NOTHING = PairQuality(precision=1.0, precision_error=0.0, match=0.0, match_error=0.0, shared=0.0)


def people(
    seed: int, *, effect: float = 0.0, shift: float = 0.0, n_tasks: int = 200, n_classes: int = 30
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y, groups and the true class of each task class; effects and shifts in units of the noise of a mean."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, 12)) * 3
    truth = np.concatenate([rng.choice(n_classes, WAYS, replace=False) for _ in range(n_tasks)])
    means = centers[truth] + rng.normal(size=(len(truth), 12)) * effect / np.sqrt(SAMPLES)
    means += np.repeat(rng.normal(size=(n_tasks, 12)) * shift / np.sqrt(SAMPLES), WAYS, axis=0)
    X = np.repeat(means, SAMPLES, axis=0) + rng.normal(size=(len(truth) * SAMPLES, 12))
    y = np.tile(np.repeat(np.arange(WAYS), SAMPLES), n_tasks)
    return X, y, np.repeat(np.arange(n_tasks), WAYS * SAMPLES), truth


@cache
def fitted(seed: int, effect: float) -> MergeLabeler:
    """What `people` with these effects give, for several tests to look at."""
    X, y, groups, _ = people(seed, effect=effect)
    return MergeLabeler().fit(X, y, groups)


def grouped(X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> tuple[TaskSamples, ClassMeans]:
    samples = group_samples(X, np.arange(len(X)), groups, y)
    return samples, class_means(samples)


def labels_of_task_classes(labeler: MergeLabeler) -> np.ndarray:
    found: Any = labeler.class_clusters_
    return np.asarray(found)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("effect", [2.0, 5.0])
def test_finds_the_classes_of_people_who_differ(effect: float, seed: int) -> None:
    truth, labeler = people(seed, effect=effect)[3], fitted(seed, effect)
    assert labeler.effects_ is not None
    assert remark(labeler) == DIFFER
    assert not len(merges_table(labeler)), "what merging did is not where these clusters come from"
    assert len(labeler.cluster_centers_) == pytest.approx(30, rel=0.1)
    assert adjusted_rand_score(truth, labels_of_task_classes(labeler)) > 0.9


@pytest.mark.slow
def test_no_task_is_lost_where_two_of_its_classes_share_a_cluster() -> None:
    X, y, groups, _ = people(0, effect=8.0)
    labeler = fitted(0, 8.0)
    effects = labeler.effects_
    assert effects is not None
    _, classes = grouped(X, y, groups)
    together = [len(np.unique(effects.cut[a:b])) < b - a for a, b in pairwise(classes.starts)]
    assert any(together), "else this shows nothing"
    assert (labeler.labels_ >= 0).all()
    labels = labels_of_task_classes(labeler)
    assert all(len(np.unique(labels[a:b])) == b - a for a, b in pairwise(classes.starts))
    # who was alone in a cluster of a task stays there
    kept = effects.assignments <= effects.cut.max()
    np.testing.assert_array_equal(effects.assignments[kept], effects.cut[kept])
    assert 0 < (~kept).sum() < 0.1 * len(kept)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_where_people_do_not_differ_merging_decides(seed: int) -> None:
    truth, labeler = people(seed)[3], fitted(seed, 0.0)
    assert labeler.effects_ is None
    assert remark(labeler) is None
    assert len(merges_table(labeler))
    assert adjusted_rand_score(truth, labels_of_task_classes(labeler)) == 1


def driven_apart(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X, y, groups and true classes of 48 tasks whose classes are further apart than those of different tasks."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(80, 16)) * 2.5
    truth = np.concatenate([rng.choice(80, WAYS, replace=False) for _ in range(48)])
    means = centers[truth].reshape(48, WAYS, 16)
    means += (means - means.mean(axis=1, keepdims=True)) / 2
    X = means.reshape(-1, 16).repeat(5, axis=0) + rng.normal(size=(len(truth) * 5, 16))
    return X, np.tile(np.arange(WAYS), 48).repeat(5), np.arange(48).repeat(5 * WAYS), truth


@pytest.mark.parametrize("seed", [4, 24])
def test_few_tasks_whose_classes_training_drove_apart_do_not_overrule_firm_merging(seed: int) -> None:
    """Pairs inside 48 tasks then speak for clusters of several classes, as if people differed."""
    X, y, groups, truth = driven_apart(seed)
    labeler = MergeLabeler().fit(X, y, groups)
    assert labeler.effects_ is None
    assert adjusted_rand_score(truth, labels_of_task_classes(labeler)) > 0.95


@pytest.mark.slow
def test_a_bound_of_merging_is_exact_unless_merging_is_firm(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def asked(samples: Any, classes: Any, fragments: Any, other: PairQuality, *, firm: bool) -> Any:
        seen.append((other, firm))
        return find_effects(samples, classes, fragments, other, firm=firm)

    monkeypatch.setattr("mela.labeling.merge_labeler.find_effects", asked)
    for X, y, groups, _ in (driven_apart(4), people(0, effect=5.0)):
        MergeLabeler().fit(X, y, groups)
    (told, firm), (bounded, loose) = seen
    assert firm
    assert told.match == told.shared**0.5, "else nothing was bounded"
    assert 0 < told.match_error <= told.match
    assert not loose
    assert bounded.match in (0, bounded.shared**0.5), "else nothing was bounded"
    assert bounded.match_error == 0


def colourful(seed: int, *, effect: float) -> tuple[TaskSamples, ClassMeans, np.ndarray, np.ndarray]:
    """Task classes whose looks vary in 6 of 18 directions, and the covariance of looks."""
    rng = np.random.default_rng(seed)
    looks = np.diag([0.0] * 12 + [effect**2] * 6)
    truth = np.concatenate([rng.choice(30, WAYS, replace=False) for _ in range(120)])
    means = rng.normal(size=(30, 18))[truth] + rng.multivariate_normal(np.zeros(18), looks, len(truth))
    X = np.repeat(means, SAMPLES, axis=0) + rng.normal(size=(len(truth) * SAMPLES, 18))
    y = np.tile(np.repeat(np.arange(WAYS), SAMPLES), 120)
    return *grouped(X, y, np.repeat(np.arange(120), WAYS * SAMPLES)), truth, looks


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_looks_that_were_tried_out_count_less(seed: int) -> None:
    samples, classes, truth, looks = colourful(seed, effect=6.0)
    everything = np.arange(len(truth))
    blind, _ = find_effects(samples, classes, everything, NOTHING)
    assert blind is None or adjusted_rand_score(truth, blind.cut) < 0.2
    found, _ = find_effects(replace(samples, looks=looks), classes, everything, NOTHING)
    assert found is not None
    assert adjusted_rand_score(truth, found.cut) > 0.8


@pytest.mark.slow
def test_looks_turn_with_the_features() -> None:
    """Nothing depends on the axes."""
    samples, classes, truth, looks = colourful(0, effect=6.0)
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(18, 18)))
    turned = replace(samples, features=samples.features @ turn, looks=turn.T @ looks @ turn)
    first, _ = find_effects(replace(samples, looks=looks), classes, np.arange(len(truth)), NOTHING)
    again, _ = find_effects(turned, class_means(turned), np.arange(len(truth)), NOTHING)
    assert first is not None
    assert again is not None
    assert adjusted_rand_score(first.cut, again.cut) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("shift", [20.0, 100.0])
def test_a_shift_that_all_classes_of_a_task_share_makes_little_difference(shift: float) -> None:
    X, y, groups, truth = people(1, shift=shift)
    labeler = MergeLabeler().fit(X, y, groups)
    assert adjusted_rand_score(truth, labels_of_task_classes(labeler)) > 0.99


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kin", [1.0, 10.0])
def test_classes_that_are_akin_are_not_taken_for_shifted_ones(kin: float, seed: int) -> None:
    """Each task draws its classes from one superclass, so that they are alike although people do not differ."""
    rng = np.random.default_rng(seed)
    centers = (rng.normal(size=(10, 1, 16)) * kin * 3 + rng.normal(size=(10, 8, 16)) * 3).reshape(80, 16)
    truth = np.concatenate([8 * (task % 10) + rng.permutation(8)[:4] for task in range(100)])
    X = centers[truth].repeat(10, axis=0) + rng.normal(size=(4000, 16))
    samples, classes = grouped(X, np.tile(np.arange(4).repeat(10), 100), np.arange(100).repeat(40))
    labeler = MergeLabeler().fit_tasks(samples)
    assert adjusted_rand_score(truth, labeler.class_labels_) == 1
    # which is not so by itself
    found, _ = find_effects(samples, classes, np.arange(400), NOTHING)
    assert found is not None
    assert adjusted_rand_score(truth, found.cut) < 0.7


@pytest.mark.slow
@pytest.mark.parametrize("soft", [False, True])
def test_new_tasks_are_shifted_as_well(soft: bool, tmp_path: Path) -> None:
    X, y, groups, truth = people(1, shift=20.0, n_tasks=260)
    old = groups < 200
    labeler = MergeLabeler(soft=soft, collisions="assign").fit(X[old], y[old], groups[old])
    assert labeler.shifts_ is not None
    assert len(labeler.shifts_.variances)
    save_labeler(tmp_path, labeler)
    kept = load_labeler(tmp_path)
    found = labeler.predict(X[~old], y[~old], groups[~old])
    np.testing.assert_array_equal(kept.predict(X[~old], y[~old], groups[~old]), found)
    assert adjusted_rand_score(truth[200 * WAYS :].repeat(SAMPLES), found) > 0.95
    if soft:
        placed = place_labels(kept, X[~old], y[~old], groups[~old])
        assert adjusted_rand_score(truth[200 * WAYS :], placed["cluster"]) > 0.95
        certain = kept.predict_proba(X[~old], y[~old], groups[~old]).max(axis=1)
        assert certain.mean() > 0.9
    # which only the shifts make possible
    labeler.shifts_ = None
    assert (
        adjusted_rand_score(truth[200 * WAYS :].repeat(SAMPLES), labeler.predict(X[~old], y[~old], groups[~old])) < 0.8
    )


@pytest.mark.slow
def test_new_tasks_find_their_clusters_among_many_features() -> None:
    """A test of significance against so many features would leave few directions, in which clusters coincide."""
    rng = np.random.default_rng(0)
    centers = np.pad(rng.normal(size=(30, 12)) * 3, ((0, 0), (0, 188)))
    truth = np.concatenate([rng.choice(30, WAYS, replace=False) for _ in range(120)])
    means = centers[truth] + rng.normal(size=(len(truth), 200)) * 8 / np.sqrt(SAMPLES)
    X = np.repeat(means, SAMPLES, axis=0) + rng.normal(size=(len(truth) * SAMPLES, 200))
    y, groups = np.tile(np.arange(WAYS).repeat(SAMPLES), 120), np.arange(120).repeat(WAYS * SAMPLES)
    old = groups < 80
    labeler = MergeLabeler(collisions="assign").fit(X[old], y[old], groups[old])
    assert labeler.effects_ is not None
    fitted = adjusted_rand_score(truth[: 80 * WAYS], labels_of_task_classes(labeler))

    def found() -> float:
        labels = labeler.predict(X[~old], y[~old], groups[~old])
        return float(adjusted_rand_score(truth[80 * WAYS :].repeat(SAMPLES), labels))

    assert found() > fitted
    covariance, means = labeler.effects_.covariance, labeler.effects_.means
    labeler.merged_ = replace(labeler.merged_, space=space_of(means, covariance, len(means)))
    assert found() < fitted - 0.1


@pytest.mark.slow
def test_the_covariance_is_that_of_effects_and_noise() -> None:
    X, y, groups, _ = people(0, effect=4.0, n_tasks=400)
    samples, classes = grouped(X, y, groups)
    noise, _ = noise_of(samples, classes)
    np.testing.assert_allclose(np.diag(noise), 1 / SAMPLES, rtol=0.1)
    found, _ = find_effects(samples, classes, np.arange(len(classes.sizes)), NOTHING)
    assert found is not None
    np.testing.assert_allclose(np.diag(found.covariance), (4**2 + 1) / SAMPLES, rtol=0.25)
    # S = (D'D + m Sigma) / (n - k + m)
    centers = np.array([found.means[found.cut == cluster].mean(axis=0) for cluster in range(found.cut.max() + 1)])
    rest, features = found.means - centers[found.cut], X.shape[1]
    whole = rest.T @ rest + features * noise
    np.testing.assert_allclose(found.covariance, whole / (len(rest) - len(centers) + features), rtol=1e-9)


@pytest.mark.slow
def test_merging_that_joins_nothing_does_not_win_by_where_its_classes_would_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each class may lie closest to one of its own, and still merging has left all of them alone."""
    from mela.labeling import merge_labeler

    X, y, groups, truth = people(0, effect=5.0)
    monkeypatch.setattr(merge_labeler, "left_out", lambda *_: truth)
    labeler = MergeLabeler().fit(X, y, groups)
    assert labeler.effects_ is not None
    assert adjusted_rand_score(truth, labels_of_task_classes(labeler)) > 0.9


def test_turns_that_help_halves_and_not_the_whole_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, groups, truth = people(0, effect=5.0)
    samples, classes = grouped(X, y, groups)
    everything = np.arange(len(truth))
    noise = Noise(*noise_of(samples, classes))
    first = TaskClasses(means=classes.means, fragments=everything, starts=classes.starts)
    clusters = first.first(first.views([noise])).clusters
    asked = []

    def again(tasks: TaskClasses, found: Found, turn: int, other: Noise) -> Found:
        assert (turn, type(other)) == (1, Noise)
        asked.append(whole := len(tasks.means) == len(truth))
        quality = replace(NOTHING, match=-1.0 if whole else len(asked))
        return found._replace(clusters=np.arange(len(tasks.means)) % 40, quality=quality)

    monkeypatch.setattr(TaskClasses, "again", again)
    found, _ = find_effects(samples, classes, everything, NOTHING)
    assert asked == [False, False, True]
    assert found is not None
    np.testing.assert_array_equal(found.cut, clusters)


@pytest.mark.slow
def test_rounds_learn_clusters_that_may_join_classes_of_a_task() -> None:
    """These pairs judge the labels of the next round, which an embedding that had learned them could not tell."""
    X, y, groups, truth = people(0, effect=7.0)
    samples, _ = grouped(X, y, groups)
    labeler = MergeLabeler()
    flat, told = labels_so_far(samples, np.arange(len(X)), labeler)
    effects = labeler.effects_
    assert effects is not None
    assert collisions(effects.cut, samples.starts) > 0
    assert collisions(labeler.class_labels_, samples.starts) == 0
    assert effects.cut.max() + 1 < len(labeler.cluster_centers_)
    assert adjusted_rand_score(truth, effects.cut) > 0.5
    np.testing.assert_array_equal(labeler.learned_labels, effects.cut)
    # a round joins less, but nothing else
    joined = {(int(one), int(whole)) for one, whole in zip(effects.finest, effects.cut, strict=True)}
    assert len(joined) == told["clusters"] == effects.finest.max() + 1 > effects.cut.max() + 1
    assert adjusted_rand_score(effects.finest[samples.classes], flat.labels[samples.index]) == 1
    found, best = (pair_quality(clusters, samples.starts) for clusters in (effects.finest, effects.cut))
    assert best.match - best.match_error <= found.match < best.match


@pytest.mark.slow
def test_networks_learn_the_labels_where_none_were_told_apart() -> None:
    plain = fitted(0, 0.0)
    assert plain.effects_ is None
    np.testing.assert_array_equal(plain.learned_labels, plain.class_labels_)
    # clusters of the cut may be rarer than asked for
    X, y, groups, _ = people(0, effect=7.0)
    often = MergeLabeler(min_count=20).fit(X, y, groups)
    assert often.effects_ is not None
    np.testing.assert_array_equal(often.learned_labels, often.class_labels_)


@pytest.mark.slow
def test_order_and_names_make_no_difference() -> None:
    X, y, groups, _ = people(0, effect=5.0)
    first = fitted(0, 5.0)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(X))
    names = np.array([f"task {number:03d}" for number in rng.permutation(groups.max() + 1)])
    again = MergeLabeler().fit(X[order], np.array(list("edcba"))[y[order]], names[groups[order]])
    assert adjusted_rand_score(first.labels_[order], again.labels_) == 1


def test_without_the_truth_only_through_pairs_inside_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree does not know which task classes met, so that these pairs can judge it."""
    from mela.labeling import effects, trees

    X, y, groups, _ = people(0, effect=5.0, n_tasks=60)
    samples, classes = grouped(X, y, groups)
    made = []
    monkeypatch.setattr(trees, "linkage", lambda points, how: made.append(linkage(points, how)) or made[-1])
    find_effects(samples, classes, np.arange(len(classes.sizes)), NOTHING)
    first = made[0]
    rng = np.random.default_rng(0)
    mixed = rng.permutation(len(classes.sizes))
    other = ClassMeans(
        task_ids=classes.task_ids, starts=classes.starts, means=classes.means[mixed], sizes=classes.sizes[mixed]
    )
    made.clear()
    monkeypatch.setattr(effects, "noise_of", lambda *_: noise_of(samples, classes))
    find_effects(samples, other, np.arange(len(classes.sizes)), NOTHING)
    np.testing.assert_allclose(made[0][:, 2], first[:, 2], atol=1e-12)


def kinds(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The same as `people` for shifted tasks of classes of four kinds, which are further apart than their classes."""
    rng, n_tasks, samples = np.random.default_rng(seed), 100, 6
    centers = 3 * rng.normal(size=(4, 12))[np.arange(20) % 4] + 0.6 * rng.normal(size=(20, 12))
    truth = np.concatenate([rng.choice(20, WAYS, replace=False) for _ in range(n_tasks)])
    means = centers[truth] + rng.normal(size=(len(truth), 12))
    means += np.repeat(rng.normal(size=(n_tasks, 12)), WAYS, axis=0)
    X = np.repeat(means, samples, axis=0) + 0.3 * rng.normal(size=(len(truth) * samples, 12))
    return (
        X,
        np.tile(np.repeat(np.arange(WAYS), samples), n_tasks),
        np.repeat(np.arange(n_tasks), WAYS * samples),
        truth,
    )


@pytest.mark.parametrize("seed", [3, 5])
def test_kinds_that_are_easier_to_tell_apart_than_classes_do_not_prevent_clusters(seed: int) -> None:
    """Four kinds cannot be the classes of tasks of five."""
    X, y, groups, truth = kinds(seed)
    labeler = MergeLabeler().fit(X, y, groups)
    assert labeler.effects_ is not None
    assert labeler.effects_.cut.max() + 1 >= WAYS
    assert adjusted_rand_score(truth, labels_of_task_classes(labeler)) > 0.15
    assert adjusted_rand_score(truth, labeler.round_labels) > 0.2


def test_fewer_fragments_than_ways_are_no_clusters() -> None:
    X, y, groups, truth = people(0, effect=8.0, n_tasks=60, n_classes=6)
    samples, classes = grouped(X, y, groups)
    assert find_effects(samples, classes, truth, NOTHING)[0] is not None
    assert find_effects(samples, classes, truth % 4, NOTHING)[0] is None


@pytest.mark.parametrize("ways", [(2,), (2, 2), (2, 1), (3, 1, 1), (2, 2, 2), (2,) + (1,) * 8])
def test_few_tasks_or_few_pairs_inside_them_are_no_error(ways: tuple[int, ...]) -> None:
    """Of some, one half has no pair that could judge it."""
    rng = np.random.default_rng(0)
    n = sum(ways)
    X = np.repeat(rng.normal(size=(n, 3)) * 5, 6, axis=0) + rng.normal(size=(n * 6, 3))
    y = np.repeat(np.concatenate([np.arange(way) for way in ways]), 6)
    labeler = MergeLabeler().fit(X, y, np.repeat(np.repeat(np.arange(len(ways)), ways), 6))
    assert len(labeler.cluster_centers_) >= max(ways)


def plain_matches(tree: np.ndarray, items: np.ndarray, starts: np.ndarray) -> list[float]:
    """The plain loop: the quality of each cut that leaves clusters enough, which are made one after the other."""
    heights = [0.0, *tree[:, 2]]
    found = []
    for height in heights:
        clusters = fcluster(tree, height, "distance") - 1
        if found and clusters.max() + 1 < np.diff(starts).max():
            break
        found.append(pair_quality(np.where(items >= 0, clusters[items], -1), starts).match)
    return found


@pytest.mark.parametrize("fragments", [False, True])
def test_all_cuts_at_once_are_judged_as_one_by_one(fragments: bool) -> None:
    rng = np.random.default_rng(0)
    starts = np.cumsum([0, *rng.integers(1, 6, size=30)])
    n = starts[-1]
    items = rng.integers(0, 25, size=n) if fragments else np.arange(n)
    if fragments:
        items[rng.integers(0, n, size=5)] = -1
        used = items >= 0
        items[used] = np.unique(items[used], return_inverse=True)[1]
    leaves = items.max() + 1
    tree = linkage(rng.normal(size=(leaves, 3)), "average")
    cuts = Cuts.of(tree, items, starts)
    every = np.ones(len(starts) - 1, dtype=bool)
    np.testing.assert_allclose(cuts.matches(every), plain_matches(tree, items, starts), atol=1e-12)


def test_a_quality_beats_another_for_sure_or_not_at_all() -> None:
    def quality(match: float, error: float, shared: float) -> PairQuality:
        return PairQuality(precision=0.9, precision_error=0.0, match=match, match_error=error, shared=shared)

    assert quality(0.2, 0.04, 0.05).beats(quality(0.1, 0.0, 0.01))
    assert not quality(0.2, 0.06, 0.05).beats(quality(0.1, 0.0, 0.01))
    assert not quality(0.2, 0.04, 0.05).beats(quality(0.1, 0.04, 0.01))


def test_people_who_differ_can_be_told_which_task_classes_are_one_class() -> None:
    X, y, groups, truth = people(0, effect=8.0)
    plain = fitted(0, 8.0)
    assert plain.effects_ is not None
    cut, rows = plain.effects_.cut, [(task, label) for task in range(200) for label in range(WAYS)]
    pairs = [(a, b) for a in range(500) for b in range(500, 1000)]
    missed = [(a, b) for a, b in pairs if truth[a] == truth[b] and cut[a] != cut[b]][:3]
    wrong = [(a, b) for a, b in pairs if truth[a] != truth[b] and cut[a] == cut[b]][:3]
    assert missed
    assert wrong
    links = {
        name: [(rows[a], rows[b]) for a, b in own] for name, own in (("must_link", missed), ("cannot_link", wrong))
    }
    told = MergeLabeler().fit(X, y, groups, **links)
    for labels in (told.class_labels_, told.learned_labels, told.round_labels):
        assert all(labels[a] == labels[b] >= 0 for a, b in missed)
        assert all(labels[a] != labels[b] for a, b in wrong)
    assert adjusted_rand_score(truth, told.class_labels_) > adjusted_rand_score(truth, plain.class_labels_)
    assert told.expected_ari_ is not None
    assert plain.expected_ari_ is not None
    assert told.expected_ari_ == pytest.approx(plain.expected_ari_, abs=0.05)
    rare = MergeLabeler(min_count=5).fit(X, y, groups, **links).class_labels_
    assert all(rare[a] == rare[b] >= 0 for a, b in missed)
