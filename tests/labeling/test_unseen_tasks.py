"""New tasks among fitted classes: against brute force and by hand, and where it is known which classes are new."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm

from mela.errors import MelaError
from mela.labeling import unseen_tasks
from mela.labeling.diagnostics import assignments_table
from mela.labeling.image_labels import label_images
from mela.labeling.label_listing import listing
from mela.labeling.labeler_choice import build_labeler
from mela.labeling.labeler_files import load_labeler, save_labeler
from mela.labeling.memberships import Memberships
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.size_prior import log_number
from mela.labeling.task_classes import TaskSamples, group_samples
from mela.labeling.task_labeler import TaskLabeler
from mela.labeling.unseen_tasks import NONE, Placed, place, place_labels


@pytest.mark.parametrize("gamma", [0.3, 40.0])
def test_the_odds_of_no_cluster_by_hand(gamma: float) -> None:
    rng = np.random.default_rng(0)
    between, weights = np.array([6.0, 2.0]), rng.choice([0.5, 1.0, 1.5], size=30)
    points, clusters = rng.normal(size=(30, 2)) * 2, rng.integers(0, 4, size=30)
    model = Memberships.of(points, weights, clusters, 4, between, gamma)
    new, own = rng.normal(size=(5, 2)) * 3, np.array([1.0, 0.5, 2.0, 1.0, 1.0])
    found = model.log_odds_or_none(new, own)
    # not more than 1: a larger gamma would rule new classes out
    used = min(gamma, 1.0)
    for a in range(5):
        expected = []
        for v in range(4):
            members = clusters == v
            precision = weights[members].sum() + 1 / between
            mean = (weights[members, None] * points[members]).sum(axis=0) / precision
            scale = np.sqrt(1 / own[a] + 1 / precision)
            expected.append(np.log(members.sum() + used) + norm.logpdf(new[a], mean, scale).sum())
        prior = np.log(used) + log_number(5, 31, used) - log_number(4, 31, used)
        expected.append(prior + norm.logpdf(new[a], 0, np.sqrt(1 / own[a] + between)).sum())
        np.testing.assert_allclose(found[a] - found[a, 0], np.array(expected) - expected[0], rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 2**32 - 1), ways=st.integers(1, 4), k=st.integers(1, 4))
@settings(deadline=None, max_examples=60)
def test_labels_of_a_task_go_where_they_are_jointly_most_probable(seed: int, ways: int, k: int) -> None:
    odds = np.random.default_rng(seed).normal(size=(ways, k + 1)) * 5
    clusters, certainty = unseen_tasks._place_task(odds)
    choices = [
        choice
        for choice in product(range(k + 1), repeat=ways)
        if len({column for column in choice if column < k}) + choice.count(k) == ways
    ]
    best = max(choices, key=lambda choice: sum(odds[row, column] for row, column in enumerate(choice)))
    assert clusters.tolist() == [NONE if column == k else column for column in best]
    for row in range(ways):
        others = {column for other, column in enumerate(best) if other != row and column < k}
        allowed = [column for column in range(k + 1) if column not in others]
        assert certainty[row] == pytest.approx(np.exp(odds[row, best[row]] - logsumexp(odds[row, allowed])))


def draw(
    rng: np.random.Generator, centers: np.ndarray, pool: np.ndarray, n_tasks: int, ways: int = 4, shift: float = 0.0
) -> tuple[TaskSamples, np.ndarray]:
    """Tasks of five samples a class, which shifts may move, and the true class of each task class."""
    truth = np.concatenate([rng.choice(pool, size=ways, replace=False) for _ in range(n_tasks)])
    X = centers[truth].repeat(5, axis=0) + rng.normal(size=(5 * len(truth), centers.shape[1]))
    y, groups = np.tile(np.arange(ways), n_tasks).repeat(5), np.arange(n_tasks).repeat(5 * ways)
    if shift:
        X += (rng.normal(size=(n_tasks, 1)) * shift * np.eye(centers.shape[1])[0])[groups]
    return group_samples(X, np.arange(len(X)), groups, y), truth


def fitted(
    seed: int, n_classes: int, m: int, distance: float, *, known: int = 0, n_tasks: int = 60, **settings: Any
) -> tuple[np.random.Generator, np.ndarray, TaskLabeler]:
    """A labeler of tasks with the first `known` classes, or all, with a generator and centers to draw others from."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, m)) * distance
    train, _ = draw(rng, centers, np.arange(known or n_classes), n_tasks)
    return rng, centers, build_labeler(**settings or {"soft": True}).fit_tasks(train)


def as_arrays(samples: TaskSamples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, local labels and tasks, as `predict` takes them."""
    return samples.features, samples.local_labels[samples.classes], samples.task_ids[samples.classes]


PRUNED = {"n_clusters": 24, "merge": False}


@pytest.mark.slow
@pytest.mark.parametrize("n_tasks", [60, 600])
def test_new_classes_are_none_of_the_known_ones(n_tasks: int) -> None:
    """Of 30 classes, 10 are in no task of the fit; after 600 tasks the fitted gamma alone would rule them out."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(30, 16)) * 1.2
    train, truth = draw(rng, centers, np.arange(20), n_tasks)
    labeler = MergeLabeler(soft=True).fit_tasks(train)
    assert labeler.memberships_ is not None
    assert labeler.memberships_.gamma > 1
    class_of = np.array([np.bincount(truth[labeler.class_labels_ == v]).argmax() for v in range(20)])
    for pool in (np.arange(20), np.arange(30), np.arange(20, 30)):
        samples, true = draw(rng, centers, pool, 100)
        found = place(labeler, samples)
        known = true < 20
        right = np.where(found.clusters >= 0, class_of[found.clusters] == true, ~known)
        assert right[known].mean() >= 0.99 if known.any() else True
        assert right[~known].mean() >= 0.95 if (~known).any() else True
        # how sure it is is about how often it is right
        assert found.certainty.mean() == pytest.approx(right.mean(), abs=0.03)


def test_without_new_classes_it_is_what_predict_says() -> None:
    rng, centers, labeler = fitted(0, 20, 16, 1.5, n_tasks=200)
    samples, _ = draw(rng, centers, np.arange(20), 100)
    found = place(labeler, samples).clusters[samples.classes]
    assert found.tolist() == labeler.predict(*as_arrays(samples)).tolist()


def test_labels_are_placed_by_their_samples() -> None:
    rng, centers, labeler = fitted(4, 7, 6, 3, known=6)
    # the last class is new
    X = centers[[0, 1, 6, 2, 6]].repeat(3, axis=0) + rng.normal(size=(15, 6)) / 3
    y, groups = np.repeat(["pilz", "baum", "neu", "oak", "new"], 3), np.repeat(["anna", "ben"], [9, 6])
    order = rng.permutation(15)
    found = place_labels(labeler, X[order], y[order], groups[order])
    names = [("anna", "baum"), ("anna", "neu"), ("anna", "pilz"), ("ben", "new"), ("ben", "oak")]
    assert [*zip(found["task"], found["label"], strict=True)] == names
    nearest = labeler.predict(centers)
    assert found["cluster"].tolist() == [nearest[1], NONE, nearest[0], NONE, nearest[2]]
    assert (found["certainty"] > 0.9).all()
    with pytest.raises(ValueError, match="3 features, but MergeLabeler is expecting 6"):
        place_labels(labeler, X[:, :3], y, groups)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, centers, labeler = fitted(1, 12, 6, 2, known=10)
    samples, _ = draw(rng, centers, np.arange(12), 50)

    def placed(block: int) -> Placed:
        monkeypatch.setattr(unseen_tasks, "BLOCK", block)
        return place(labeler, samples)

    whole = placed(10_000)
    for block in (1, 9):
        assert placed(block).clusters.tolist() == whole.clusters.tolist()
        np.testing.assert_allclose(placed(block).certainty, whole.certainty, rtol=1e-9)


def test_tasks_of_any_ways_are_placed() -> None:
    """One label alone, and more labels than there are clusters."""
    rng, centers, labeler = fitted(2, 5, 6, 3)
    alone = draw(rng, centers, np.arange(5), 3, ways=1)[0]
    assert (place(labeler, alone).clusters >= 0).all()
    crowd = np.concatenate([centers, centers[:2] + 0.1]).repeat(5, axis=0)
    X = crowd + rng.normal(size=crowd.shape) / 5
    found = place(labeler, group_samples(X, np.arange(35), np.zeros(35), np.arange(7).repeat(5))).clusters
    assert sorted(found[found >= 0]) == list(range(5))


def test_without_a_model_it_is_what_predict_says() -> None:
    rng, centers, labeler = fitted(3, 6, 4, 4, **PRUNED)
    samples, _ = draw(rng, centers, np.arange(6), 20)
    labeler.space_ = labeler.memberships_ = None
    found = place(labeler, samples)
    assert found.clusters[samples.classes].tolist() == labeler.predict(*as_arrays(samples)).tolist()
    assert np.isnan(found.certainty).all()


def test_clusters_of_a_persons_other_labels_are_taken() -> None:
    """A label that lies where another label of the same person has its cluster is something else."""
    rng, centers, labeler = fitted(5, 6, 6, 3)
    samples, _ = draw(rng, centers, np.arange(6), 20, ways=1)
    free = place(labeler, samples)
    taken = {task: [cluster] for task, cluster in zip(samples.task_ids[::2], free.clusters[::2], strict=True)}
    held = place(labeler, samples, taken)
    assert (held.clusters[1::2] == free.clusters[1::2]).all()
    assert (held.clusters[::2] != free.clusters[::2]).all()
    assert held.certainty.min() >= 0
    assert held.certainty.max() <= 1
    # so is it without a model, where nothing can be none of the clusters but what collides
    labeler.space_ = labeler.memberships_ = None
    assert (place(labeler, samples, taken).clusters[::2] == NONE).all()
    assert (place(labeler, samples).clusters >= 0).all()


def test_without_a_model_one_wide_task_does_not_cost_the_others() -> None:
    rng, centers, labeler = fitted(6, 6, 4, 4, **PRUNED)
    labeler.space_ = labeler.memberships_ = None
    ways = len(labeler.cluster_centers_) + 1
    X = np.concatenate([rng.normal(size=(ways, 4)), centers[:3]])
    found = place_labels(labeler, X, np.arange(ways + 3), np.repeat(["wide", "usual"], [ways, 3]))
    clusters = found.groupby("task")["cluster"].agg(list)
    assert set(clusters["wide"]) == {NONE}
    assert NONE not in clusters["usual"]
    assert len(set(clusters["usual"])) == 3


@pytest.mark.parametrize(("shift", "named"), [(0.0, False), (10.0, False), (0.0, True)])
def test_the_table_of_labels_is_as_certain_as_the_labeler(shift: float, named: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    centers = rng.normal(size=(12, 5 if shift else 3)) * 1.2
    samples, truth = draw(rng, centers, np.arange(12), 100 if shift else 40, ways=3, shift=shift)
    if named:
        samples = replace(samples, written=np.array([5 * "abcdefghijkl"[own] for own in truth]))
    others, kinds = draw(rng, centers, np.arange(12), 10, ways=3, shift=shift)
    labeler = MergeLabeler(soft=True).fit_tasks(samples)
    assert (labeler.shifts_ is not None and len(labeler.shifts_.variances) > 0) == (shift > 0)
    assert (labeler.names_ is not None) == named
    save_labeler(tmp_path, labeler)
    flat = label_images(labeler.class_labels_, len(labeler.cluster_centers_), samples.index, samples.classes)
    _, labels, groups = as_arrays(others)
    held_out = pd.DataFrame({"task_id": 1000 + groups, "image_id": others.index, "local_label": labels})
    # the features of both kinds of images have the same numbers, in tables of their own
    known = load_labeler(tmp_path), samples, assignments_table(flat, labeler)
    written = pd.DataFrame()
    if named:
        own = pd.DataFrame({"task_id": samples.task_ids, "local_label": samples.local_labels, "label": samples.written})
        new = pd.DataFrame({"task_id": 1000 + others.task_ids, "local_label": others.local_labels})
        written = pd.concat([own, new.assign(label=[5 * "abcdefghijkl"[kind] for kind in kinds])])
        written = written.assign(task=written["task_id"].astype(str))
        others = replace(others, written=written["label"].to_numpy()[len(own) :])
    table = listing(*known, {"test": held_out}, written, others.index, others.features)
    trained, new = table[table["split"] == "train"], table[table["split"] == "test"]
    used = labeler.class_labels_ >= 0
    own = labeler.class_weights_[np.flatnonzero(used), labeler.class_labels_[used]]
    sure = trained["certainty"].to_numpy()[used]
    assert len(np.unique(sure)) > 5
    merged = ~np.isnan(sure)
    assert merged.mean() > 0.95
    np.testing.assert_allclose(sure[merged], 100 * own[merged], atol=0.051)
    np.testing.assert_allclose(new["certainty"], 100 * place(labeler, others).certainty, atol=0.051)
    assert new["certainty"].min() < 95
    if named:
        without = place(labeler, replace(others, written=None)).clusters
        X, y, groups = as_arrays(others)
        again = place_labels(labeler, X, y, groups, names=others.written[others.classes])
        np.testing.assert_array_equal(again["cluster"], place(labeler, others).clusters)
        with pytest.raises(MelaError, match="150 and 149 entries; give one of names for each row of X"):
            place_labels(labeler, X, y, groups, names=others.written[others.classes][1:])
        meant = np.array([np.bincount(truth[labeler.class_labels_ == own]).argmax() for own in range(12)])
        right = [
            meant[clusters] == kinds for clusters in (new["cluster"].to_numpy(dtype=np.int64, na_value=-1), without)
        ]
        assert right[0].mean() > right[1].mean() + 0.1
