"""Clusters that grow by new tasks, against a fit to all tasks and sums over samples."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mela.errors import MelaError
from mela.labeling import MergeLabeler, load_labeler, save_labeler
from mela.labeling.size_prior import log_number

Tasks = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def drawn(seed: int, n_tasks: int = 240, n_classes: int = 30, late: int = 10, distance: float = 1.5) -> Tasks:
    """Features, local labels, tasks, true class of each sample; the first half of the tasks lacks `late` classes."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, 12)) * distance
    truth = np.concatenate(
        [
            rng.choice(np.arange(late if task < n_tasks // 2 else 0, n_classes), 4, replace=False)
            for task in range(n_tasks)
        ]
    ).repeat(5)
    features = centers[truth] + rng.normal(size=(len(truth), 12))
    return features, np.tile(np.arange(4).repeat(5), n_tasks), np.arange(n_tasks).repeat(20), truth


def part(tasks: Tasks, first: int, last: int) -> Tasks:
    own = (tasks[2] >= first) & (tasks[2] < last)
    return tasks[0][own], tasks[1][own], tasks[2][own], tasks[3][own]


@pytest.mark.parametrize(("seed", "soft"), [(0, False), (1, True), (2, False)])
def test_as_good_as_a_fit_to_all(seed: int, soft: bool) -> None:
    tasks = drawn(seed)
    every = MergeLabeler().fit(*tasks[:3]).labels_
    labeler, found = MergeLabeler(soft=soft), []
    for first, last in [(0, 120), (120, 140), (140, 200), (200, 240)]:
        some = part(tasks, first, last)
        found.append(labeler.partial_fit(*some[:3]).labels_)
        assert (labeler.task_classes_.task_ids >= first).all()
    labels = np.concatenate(found)
    assert labels.min() >= 0
    assert adjusted_rand_score(tasks[3], labels) > adjusted_rand_score(tasks[3], every) - 0.01
    assert len(labeler.counts_) == len(labeler.cluster_centers_) == labels.max() + 1
    assert found[0].max() + 1 <= 21
    # the first tasks with new classes open them, and later ones know these
    assert len(np.unique(labels)) == pytest.approx(30, abs=1)


def test_what_is_known_of_a_cluster_is_that_of_all_its_samples() -> None:
    tasks = drawn(1)
    labeler = MergeLabeler(soft=True).fit(*part(tasks, 0, 120)[:3])
    labels = [labeler.labels_]
    labels += [labeler.partial_fit(*part(tasks, first, first + 60)[:3]).labels_ for first in (120, 180)]
    whole = np.concatenate(labels)
    for cluster, center in enumerate(labeler.cluster_centers_):
        np.testing.assert_allclose(center, tasks[0][whole == cluster].mean(axis=0), rtol=1e-9)
    assert labeler.counts_.tolist() == (np.bincount(whole) / 5).tolist()
    assert labeler.memberships_ is not None
    assert labeler.memberships_.counts.tolist() == labeler.counts_.tolist()
    # nor is a new class more or less probable than if all had come at once
    model, number, n = labeler.memberships_, len(labeler.counts_), int(labeler.counts_.sum())
    one_more = log_number(number, n, model.gamma) - log_number(number - 1, n, model.gamma)
    assert model.novelty == pytest.approx(model.gamma * np.exp(one_more))
    own = labeler.soft_labels_[np.arange(len(labels[2])), labels[2]]
    np.testing.assert_allclose(labeler.soft_labels_.sum(axis=1), 1)
    assert np.mean(own) > 0.95


def test_known_clusters_keep_their_numbers_and_a_task_has_different_ones() -> None:
    tasks = drawn(2, late=0)
    labeler = MergeLabeler().fit(*part(tasks, 0, 120)[:3])
    known = part(tasks, 0, 120)
    before = labeler.predict(*known[:3])
    found = labeler.partial_fit(*part(tasks, 120, 240)[:3]).class_labels_.reshape(-1, 4)
    assert all(len(set(row)) == 4 for row in found.tolist())
    assert (labeler.predict(*known[:3]) == before).mean() > 0.99


def test_order_and_names_of_tasks_make_no_difference() -> None:
    tasks, rng = drawn(0), np.random.default_rng(0)
    first, (features, labels, groups, _) = part(tasks, 0, 120), part(tasks, 120, 240)
    mixed = rng.permutation(len(features))
    one = MergeLabeler().fit(*first[:3]).partial_fit(features, labels, groups).labels_
    names = np.array([f"task {300 - task}" for task in groups])
    other = MergeLabeler().fit(*first[:3]).partial_fit(features[mixed], labels[mixed], names[mixed]).labels_
    assert adjusted_rand_score(one[mixed], other) > 0.999


def test_a_labeler_that_was_saved_goes_on(tmp_path: Path) -> None:
    tasks = drawn(0)
    labeler = MergeLabeler(soft=True).fit(*part(tasks, 0, 120)[:3])
    save_labeler(tmp_path / "soft", labeler)
    wanted = labeler.partial_fit(*part(tasks, 120, 240)[:3])
    restored = load_labeler(tmp_path / "soft")
    assert isinstance(restored, MergeLabeler)
    assert (restored.partial_fit(*part(tasks, 120, 240)[:3]).labels_ == wanted.labels_).all()
    save_labeler(tmp_path / "grown", restored)
    again = load_labeler(tmp_path / "grown")
    assert (again.predict(tasks[0]) == wanted.predict(tasks[0])).all()

    save_labeler(tmp_path / "hard", MergeLabeler().fit(*part(tasks, 0, 120)[:3]))
    bare = load_labeler(tmp_path / "hard")
    assert isinstance(bare, MergeLabeler)
    with pytest.raises(MelaError, match=r"^partial_fit: expected a labeler with a model of its classes"):
        bare.partial_fit(*part(tasks, 120, 240)[:3])


def test_people_who_differ() -> None:
    tasks = drawn(3, late=0, distance=2)
    features = tasks[0] + np.random.default_rng(0).normal(size=(len(tasks[0]) // 5, 12)).repeat(5, axis=0) * 1.5
    some = (features, *tasks[1:])
    labeler = MergeLabeler().fit(*part(some, 0, 120)[:3])
    assert labeler.effects_ is not None
    reached = adjusted_rand_score(part(some, 0, 120)[3], labeler.learned_labels.repeat(5))
    grown = labeler.partial_fit(*part(some, 120, 240)[:3])
    assert adjusted_rand_score(part(some, 120, 240)[3], grown.labels_) > reached - 0.1
    # a network learns the new tasks' labels
    assert (grown.learned_labels == grown.class_labels_).all()
    assert (grown.round_labels == grown.class_labels_).all()


def test_a_new_fit_forgets() -> None:
    tasks = drawn(0)
    labeler = MergeLabeler().fit(*part(tasks, 0, 120)[:3])
    wanted = labeler.counts_.tolist()
    labeler.partial_fit(*part(tasks, 120, 240)[:3])
    assert labeler.fit(*part(tasks, 0, 120)[:3]).counts_.tolist() == wanted
    one = labeler.partial_fit(*part(tasks, 120, 200)[:3]).labels_
    assert (one == MergeLabeler().fit(*part(tasks, 0, 120)[:3]).partial_fit(*part(tasks, 120, 200)[:3]).labels_).all()
