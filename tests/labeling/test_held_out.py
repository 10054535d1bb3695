"""Merging as tasks judge it that had no part in it: against plain loops, and against the truth."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mela import MergeLabeler
from mela.data.array_types import Floats, Ints
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


def test_some_tasks_are_as_if_there_were_no_others() -> None:
    rng = np.random.default_rng(0)
    groups, y = rng.integers(0, 12, size=300), rng.integers(0, 4, size=300)
    X = rng.normal(size=(300, 5))
    samples = with_sources(samples_of(X, y, groups), groups % 5)
    asked = np.isin(np.arange(12), [0, 3, 4, 9, 11])
    kept = np.isin(groups, np.flatnonzero(asked))
    found, expected = samples.some(asked), with_sources(samples_of(X[kept], y[kept], groups[kept]), groups[kept] % 5)
    for name in ("classes", "task_ids", "local_labels", "sources", "sizes", "starts"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert np.array_equal(found.features[found.index], expected.features[expected.index])
    assert np.array_equal(found.order, np.arange(kept.sum()))


def test_equal_to_plain_loops() -> None:
    samples, _ = few_samples(0, n_tasks=60)
    classes = class_means(samples)
    half = np.random.default_rng(0).permutation(60) % 2 == 0
    wrong, shares = 0, []
    for fitted in (half, ~half):
        part = samples.some(fitted)
        own = class_means(part)
        merged = merge_classes(part, own)
        used = range(merged.assignments.max() + 1)
        centers = np.array([own.means[merged.assignments == cluster].mean(axis=0) for cluster in used])
        points = merged.space.transform(centers)
        placed = []
        for task in np.flatnonzero(~fitted):
            task_points = merged.space.transform(classes.means[classes.starts[task] : classes.starts[task + 1]])
            found = [int(((points - point) ** 2).sum(axis=1).argmin()) for point in task_points]
            wrong += sum(found[i] == found[j] for i in range(5) for j in range(i))
            placed += found
        shares.append(np.mean([placed[i] == placed[j] for i in range(len(placed)) for j in range(i)]))
    assert held_out_error(samples, classes) == pytest.approx(wrong / 600 / np.mean(shares))


@pytest.mark.slow
def test_few_samples_are_not_called_good_labels() -> None:
    """Clusters that have grown around noise seem right to their own task classes, but not to other ones."""
    expected, reached, own = [], [], []
    for seed in range(4):
        samples, truth = few_samples(seed)
        labeler = MergeLabeler().fit_tasks(samples)
        found = labeler.class_clusters_
        expected.append(labeler.expected_ari_)
        reached.append(adjusted_rand_score(truth, found))
        placed = left_out(labeler.merged_.points, samples.sizes, labeler.merged_.assignments)
        own.append(pair_quality(placed, samples.starts).precision)
        assert labeler.expected_ari_ == pytest.approx(labeler.pair_quality_.precision, abs=0.02)
    assert np.mean(own) > np.mean(reached) + 0.2
    assert np.mean(expected) == pytest.approx(np.mean(reached), abs=0.15)


def test_nobody_else_can_judge_a_single_task_or_tasks_of_one_source() -> None:
    samples, _ = few_samples(0, n_tasks=2)
    one = samples.some(np.array([True, False]))
    assert held_out_error(one, class_means(one)) is None
    single = samples_of(np.eye(6), np.tile(np.arange(3), 2), np.repeat([0, 1], 3))
    assert held_out_error(single, class_means(single)) is None
