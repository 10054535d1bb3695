"""Merging as tasks judge it that had no part in it: against plain loops, and against the truth."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mela import MergeLabeler
from mela.data.array_types import Floats, Ints
from mela.labeling import merge_labeler
from mela.labeling.expected_ari import _recaptured
from mela.labeling.held_out import held_out_error
from mela.labeling.merging import left_out, merge_classes
from mela.labeling.pair_quality import pair_quality
from mela.labeling.task_classes import TaskSamples, class_means, group_samples, with_sources


def samples_of(X: Floats, y: Ints, groups: Ints) -> TaskSamples:
    return group_samples(X, np.arange(len(X)), groups, y)


def few_samples(seed: int, n_tasks: int = 200) -> tuple[TaskSamples, Ints]:
    """Tasks of five of 40 classes, three samples each, and the class of each task class."""
    rng = np.random.default_rng(seed)
    truth = np.concatenate([rng.permutation(40)[:5] for _ in range(n_tasks)])
    X = np.repeat(rng.normal(size=(40, 64))[truth], 3, axis=0) + 3.5 * rng.normal(size=(3 * len(truth), 64))
    return samples_of(X, np.tile(np.arange(5), n_tasks).repeat(3), np.arange(n_tasks).repeat(15)), truth


@pytest.mark.parametrize("sources", [5, 1])
def test_some_tasks_are_as_if_there_were_no_others(sources: int) -> None:
    rng = np.random.default_rng(0)
    groups, y = rng.integers(0, 12, size=300), rng.integers(0, 4, size=300)
    X, owners = rng.normal(size=(300, 5)), groups % 6
    asked = np.isin(np.arange(12), [0, 3, 4, 9, 11]) if sources > 1 else np.arange(12) % 6 == 2
    kept = np.isin(groups, np.flatnonzero(asked))
    found = with_sources(samples_of(X, y, groups), owners).some(asked)
    expected = with_sources(samples_of(X[kept], y[kept], groups[kept]), owners[kept])
    for name in ("classes", "task_ids", "local_labels", "sources", "sizes", "starts"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert (found.sources is None) == (sources == 1)
    assert np.array_equal(found.features[found.index], expected.features[expected.index])
    assert np.array_equal(found.order, np.arange(kept.sum()))


def test_equal_to_plain_loops() -> None:
    """Also where one half has more tasks than the other, because ten sources have one to ten tasks each."""
    samples, _ = few_samples(0, n_tasks=55)
    samples = replace(samples, sources=np.repeat(np.arange(10), np.arange(1, 11)))
    classes = class_means(samples)
    divisions = []
    generator = np.random.default_rng(0)
    for _ in range(5):
        divisions.append((generator.permutation(10) % 2 == 0)[samples.sources])
    half = max(divisions, key=lambda own: min(own.sum(), 55 - own.sum()))
    assert half.sum() != 27.5
    wrong, expected = 0, 0.0
    for fitted in (half, ~half):
        part = samples.some(fitted)
        own = class_means(part)
        merged = merge_classes(part, own)
        used = range(merged.assignments.max() + 1)
        centers = np.array([own.means[merged.assignments == cluster].mean(axis=0) for cluster in used])
        points = merged.space.transform(centers)
        placed, owners = [], []
        for task in np.flatnonzero(~fitted):
            task_points = merged.space.transform(classes.means[classes.starts[task] : classes.starts[task + 1]])
            placed += [int(((points - point) ** 2).sum(axis=1).argmin()) for point in task_points]
            owners += [task] * 5
        pairs = [(i, j) for i in range(len(placed)) for j in range(i)]
        together = np.array([placed[i] == placed[j] for i, j in pairs])
        inside = np.array([owners[i] == owners[j] for i, j in pairs])
        wrong += int(together[inside].sum())
        expected += inside.sum() * together[~inside].mean()
    assert held_out_error(samples, classes, 30) == pytest.approx(wrong / expected)


@pytest.mark.slow
def test_few_samples_are_not_called_good_labels() -> None:
    """Clusters that have grown around noise seem right to their own task classes, but not to other ones."""
    expected, reached, own = [], [], []
    for seed in range(2):
        samples, truth = few_samples(seed)
        labeler = MergeLabeler().fit_tasks(samples)
        expected.append(labeler.expected_ari_)
        reached.append(adjusted_rand_score(truth, labeler.class_clusters_))
        placed = left_out(labeler.merged_.points, samples.sizes, labeler.merged_.assignments)
        own.append(pair_quality(placed, samples.starts).precision)
        error = held_out_error(samples, class_means(samples), int(labeler.merged_.assignments.max()) + 1)
        assert labeler.pair_quality_.precision == pytest.approx(1 - error)
        rare = MergeLabeler(min_count=2).fit_tasks(samples)
        assert (rare.pair_quality_ == labeler.pair_quality_) == (labeler.counts_.min() > 1)
    assert np.mean(own) > np.mean(reached) + 0.2
    assert np.mean(expected) == pytest.approx(np.mean(reached), abs=0.15)


def test_sure_clusters_need_no_other_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    truth = np.concatenate([rng.permutation(12)[:5] for _ in range(80)])
    X = np.repeat(6 * rng.normal(size=(12, 8))[truth], 3, axis=0) + rng.normal(size=(1200, 8))
    groups, y = np.arange(80).repeat(15), np.tile(np.arange(5), 80).repeat(3)
    asked = []
    monkeypatch.setattr(merge_labeler, "held_out_error", lambda *_, **__: asked.append(1))
    assert MergeLabeler().fit(X, y, groups).expected_ari_ == pytest.approx(1, abs=0.01)
    assert not asked
    assert MergeLabeler().fit_tasks(few_samples(0)[0]).expected_ari_ is None
    assert asked == [1]


def test_others_judge_only_where_half_of_the_tasks_show_the_classes() -> None:
    samples, _ = few_samples(0)
    classes = class_means(samples)
    assert held_out_error(samples, classes, 125) is not None
    assert held_out_error(samples, classes, 126) is None
    owners = np.where(np.arange(200) < 160, 0, 1)
    assert held_out_error(replace(samples, sources=owners), replace(classes, sources=owners), 40) is None
    owners = np.zeros(200, dtype=np.int64)
    assert held_out_error(replace(samples, sources=owners), replace(classes, sources=owners), 40) is None


@pytest.mark.parametrize("seed", [1, 2, 4])
def test_a_half_that_cannot_be_merged_does_not_end_the_fit(seed: int) -> None:
    """In half of the tasks each label has one image twice, which tells nothing of how much images differ."""
    rng = np.random.default_rng(seed)
    twice = np.random.default_rng(0).permutation(8) % 2 == 0
    truth = np.concatenate([rng.permutation(6)[:3] for _ in range(8)])
    X = np.repeat(1.5 * rng.normal(size=(6, 8))[truth], 2, axis=0) + rng.normal(size=(48, 8))
    for task in np.flatnonzero(twice):
        X[6 * task + 1 : 6 * task + 6 : 2] = X[6 * task : 6 * task + 6 : 2]
    y, groups = np.tile(np.repeat(np.arange(3), 2), 8), np.arange(8).repeat(6)
    samples = samples_of(X, y, groups)
    assert held_out_error(samples, class_means(samples), 3) is None
    assert len(MergeLabeler().fit(X, y, groups).cluster_centers_) >= 3


@pytest.mark.parametrize(("known", "told"), [(700, None), (2500, 0.02)])
def test_pairs_of_one_class_are_counted_only_if_many_are_found_twice(known: int, told: float | None) -> None:
    """Both find half of the pairs that are of one class, and a quarter is found by both."""
    one, both = np.array([0.01, 0.0]), np.array([0.005, 0.0])
    assert _recaptured(one, one, both, known) == (told if told is None else pytest.approx(told))
