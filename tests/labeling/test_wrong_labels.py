"""Images with the label of another class of their task: against conditional densities, and on tasks with known ones."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import roc_auc_score

from mela import LearnLabeler, MergeLabeler
from mela.errors import MelaError
from mela.io.name_tables import WRONG_LABELS
from mela.labeling import load_labeler, save_labeler, wrong_labels
from mela.labeling.space import sample_space
from mela.labeling.task_classes import class_means, group_samples
from mela.labeling.wrong_label_listing import LEAST, wrong_label_listing
from mela.labeling.wrong_labels import _effects, _log_densities, find_wrong_labels

WAYS, SAMPLES = 5, 8


def tasks(
    seed: int, share: float, *, own: float = 0.0, n_tasks: int = 80, tails: bool = False, distance: float = 1.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels, tasks, which labels are wrong, and the class of each task class; `own` is how people differ."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(30, 16)) * distance
    truth = np.concatenate([rng.permutation(30)[:WAYS] for _ in range(n_tasks)])
    means = centers[truth] + own * rng.normal(size=(len(truth), 16))
    size = (len(truth) * SAMPLES, 16)
    X = means.repeat(SAMPLES, axis=0) + (rng.standard_t(3, size=size) / 3**0.5 if tails else rng.normal(size=size))
    y = np.tile(np.arange(WAYS).repeat(SAMPLES), n_tasks)
    wrong = rng.random(len(y)) < share
    y = np.where(wrong, (y + rng.integers(1, WAYS, size=len(y))) % WAYS, y)
    return X, y, np.arange(n_tasks).repeat(WAYS * SAMPLES), wrong, truth


@pytest.mark.parametrize(("own", "tails"), [(0.0, False), (0.6, False), (0.0, True)])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.2])
def test_wrong_labels_are_counted_and_found(share: float, own: float, tails: bool) -> None:
    X, y, groups, wrong, _ = tasks(0, share, own=own, tails=tails)
    labeler = MergeLabeler().fit(X, y, groups)
    found = labeler.wrong_label_proba()
    # many of them widen the noise, so that rather too few are counted
    assert found.mean() == pytest.approx(wrong.mean(), abs=0.02)
    named = found > 0.5
    if share:
        assert roc_auc_score(wrong, found) > 0.99
        assert wrong[named].mean() > 0.8
        assert named[wrong].mean() > 0.9
        # what is said to be probable is so
        sure = found[named].mean()
        assert wrong[named].mean() == pytest.approx(sure, abs=0.1)
    else:
        assert named.mean() < 0.01


def test_classes_that_overlap_are_no_wrong_labels() -> None:
    X, y, groups, _, truth = tasks(0, 0.0, distance=0.3)
    samples = group_samples(X, np.arange(len(X)), groups, y)
    found = find_wrong_labels(samples, truth)
    assert found.share < 0.02
    assert (found.probabilities > 0.5).mean() < 0.01


@pytest.mark.parametrize("known", [True, False])
def test_densities_are_those_of_one_sample_given_all_others(known: bool) -> None:
    """Of a normal distribution of all samples: classes, task classes and samples each add their variance."""
    rng = np.random.default_rng(0)
    sizes = [3, 5, 4, 6, 1, 5]
    truth = np.array([0, 1, 0, 2, 1, 2]) if known else np.full(6, -1)
    classes = np.repeat(np.arange(6), sizes)
    X = 3 * rng.normal(size=(3, 2))[np.array([0, 1, 0, 2, 1, 2])[classes]] + rng.normal(size=(len(classes), 2))
    samples = group_samples(X, np.arange(len(X)), classes // 2, classes % 2)
    means = class_means(samples)
    space = sample_space(samples, means)
    found, first = _log_densities(samples, means, space, truth)
    points, noise = space.transform(X), np.mean(sizes)
    clusters = np.where(truth >= 0, truth, np.arange(6) + 3)
    tau = _effects(space.transform(means.means), np.array(sizes) / noise, np.unique(clusters, return_inverse=True)[1])
    for i, own in enumerate(classes):
        expected = []
        for c in (own - own % 2, own - own % 2 + 1):
            total = 0.0
            for d in range(points.shape[1]):
                as_if = np.where(np.arange(len(classes)) == i, c, classes)
                same_class = as_if[:, None] == as_if[None]
                same_cluster = clusters[as_if][:, None] == clusters[as_if][None]
                joint = space.between[d] * same_cluster + tau[d] * same_class + noise * np.eye(len(classes))
                rest = np.arange(len(classes)) != i
                whole = multivariate_normal(cov=joint).logpdf(points[:, d])
                total += whole - multivariate_normal(cov=joint[np.ix_(rest, rest)]).logpdf(points[rest, d])
            expected.append(total)
        assert first[i] == own - own % 2
        np.testing.assert_allclose(np.diff(found[i])[0], np.diff(expected)[0], rtol=1e-6, atol=1e-8)


def test_order_names_and_scale_make_no_difference() -> None:
    X, y, groups, *_ = tasks(1, 0.1)
    rng = np.random.default_rng(0)
    mixed = rng.permutation(len(X))
    one = MergeLabeler().fit(X, y, groups).wrong_label_proba()
    names = np.array([f"task {900 - task}" for task in groups])
    turned = X @ np.linalg.qr(rng.normal(size=(16, 16)))[0] * 7 + 3
    other = MergeLabeler().fit(turned[mixed], np.array(list("edcba"))[y[mixed]], names[mixed]).wrong_label_proba()
    np.testing.assert_allclose(one[mixed], other, atol=0.01)


def test_other_is_where_the_sample_comes_from() -> None:
    X, y, groups, _, truth = tasks(2, 0.1)
    samples = group_samples(X, np.arange(len(X)), groups, y)
    found = find_wrong_labels(samples, truth)
    named = found.probabilities > 0.5
    # samples lie in the order of their labels, and were drawn in that of their classes
    own = (np.arange(len(X)) // SAMPLES)[samples.order]
    assert (found.others[named] == own[named]).mean() > 0.95
    assert (samples.task_ids[found.others] == samples.task_ids[samples.classes]).all()


def test_tasks_of_one_class_have_no_other() -> None:
    X, y, groups, _, truth = tasks(0, 0.1, n_tasks=40)
    alone = np.concatenate([y, np.zeros(6, dtype=np.int64)])
    samples = group_samples(
        np.concatenate([X, X[:6]]), np.arange(len(alone)), np.concatenate([groups, [40] * 6]), alone
    )
    found = find_wrong_labels(samples, np.concatenate([truth, [-1]]))
    assert found.probabilities[-6:].tolist() == [0] * 6
    assert found.others[-6:].tolist() == [200] * 6
    only = group_samples(X[:6], np.arange(6), np.zeros(6, dtype=np.int64), np.zeros(6, dtype=np.int64))
    assert find_wrong_labels(only, np.zeros(1, dtype=np.int64)).share == 0


@pytest.mark.parametrize("copies", [1, 3])
def test_samples_that_never_differ_tell_nothing(copies: int) -> None:
    rows = np.arange(6).repeat(copies)
    samples = group_samples(np.eye(6), rows, rows // 2, rows % 2)
    found = find_wrong_labels(samples, np.array([0, 1, 0, 1, 0, 1]))
    assert found.share == 0
    assert not found.probabilities.any()


@pytest.mark.parametrize(("m", "distance"), [(16, 0.3), (16, 1.0), (128, 0.3)])
def test_samples_of_unequal_noise_are_no_wrong_labels(m: int, distance: float) -> None:
    rng = np.random.default_rng(0)
    truth = np.concatenate([rng.permutation(30)[:WAYS] for _ in range(80)])
    X = distance * rng.normal(size=(30, m))[truth].repeat(SAMPLES, axis=0)
    X += rng.normal(size=X.shape) * rng.lognormal(sigma=0.6, size=(len(X), 1))
    samples = group_samples(X, np.arange(len(X)), np.arange(80).repeat(40), np.tile(np.arange(5).repeat(8), 80))
    found = find_wrong_labels(samples, truth)
    assert found.share < 0.05
    assert (found.probabilities > 0.5).mean() < 0.03


def test_densities_that_are_too_sure_are_corrected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Features with heavy tails, as weak embeddings have: most that look wrong are not."""
    X, y, groups, _, truth = tasks(0, 0.0, tails=True, distance=0.5)
    samples = group_samples(X, np.arange(len(X)), groups, y)
    assert (found := find_wrong_labels(samples, truth)).share < 0.04
    monkeypatch.setattr(wrong_labels, "_fitted", lambda *_: (0.05, 1.0))
    assert (find_wrong_labels(samples, truth).probabilities > 0.5).sum() > 1.3 * (found.probabilities > 0.5).sum()


def test_images_come_from_large_classes_rather_than_small_ones() -> None:
    rng = np.random.default_rng(0)
    truth = np.concatenate([rng.permutation(30)[:3] for _ in range(100)])
    own = np.tile(np.array([0] * 60 + [1] * 4 + [2] * 4), 100)
    groups = np.arange(100).repeat(68)
    X = 0.6 * rng.normal(size=(30, 16))[truth.reshape(100, 3)[groups, own]] + rng.normal(size=(6800, 16))
    wrong = rng.random(6800) < 0.05
    y = np.where(wrong, (own + rng.integers(1, 3, size=6800)) % 3, own)
    samples = group_samples(X, np.arange(6800), groups, y)
    probabilities = np.empty(6800)
    probabilities[samples.order] = find_wrong_labels(samples, truth).probabilities
    assert wrong[y > 0].mean() > 0.2
    # without the sizes it would be 0.1
    assert probabilities[y > 0].mean() == pytest.approx(wrong[y > 0].mean(), abs=0.08)


def test_parts_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, groups, _, truth = tasks(0, 0.1, n_tasks=20)
    samples = group_samples(X, np.arange(len(X)), groups, y)
    whole = find_wrong_labels(samples, truth)
    monkeypatch.setattr(wrong_labels, "NUMBERS", 300)
    parts = find_wrong_labels(samples, truth)
    np.testing.assert_allclose(parts.probabilities, whole.probabilities, rtol=1e-9)
    assert (parts.others == whole.others).all()


def test_labelers_of_both_kinds_tell_and_one_from_a_file_does_not(tmp_path: Path) -> None:
    X, y, groups, wrong, _ = tasks(0, 0.1)
    labeler = LearnLabeler(n_clusters=60, q=3.0).fit(X, y, groups)
    assert roc_auc_score(wrong, labeler.wrong_label_proba()) > 0.95
    save_labeler(tmp_path / "saved", MergeLabeler().fit(X, y, groups))
    with pytest.raises(
        MelaError, match=r"^wrong_label_proba: expected the samples of the fit, got a labeler from a file"
    ):
        load_labeler(tmp_path / "saved").wrong_label_proba()


def test_the_list_names_people_labels_and_files() -> None:
    X, y, groups, wrong, truth = tasks(0, 0.05)
    samples = group_samples(X, np.arange(len(X)), groups, y)
    keys = pd.DataFrame({"task_id": samples.task_ids, "local_label": samples.local_labels})
    assignments = keys.assign(cluster=truth, clustered=True).sample(frac=1, random_state=0)
    names = keys.assign(task=[f"p{task}" for task in keys["task_id"]], label=[f"l{n}" for n in keys["local_label"]])
    files = pd.DataFrame({"image_id": np.arange(len(X)) + 7, "path": [f"{i}.png" for i in range(len(X))]})
    table, share = wrong_label_listing(samples, np.arange(len(X)) + 7, assignments, names, files)
    assert list(table.columns) == WRONG_LABELS.names
    assert share == pytest.approx(100 * wrong.mean(), abs=1)
    assert table["probability"].is_monotonic_decreasing
    assert table["probability"].between(LEAST, 100).all()
    at = table["image_id"].to_numpy() - 7
    assert wrong[at].mean() > 0.8
    assert table["path"].tolist() == [f"{i}.png" for i in at]
    assert table["task"].tolist() == [f"p{groups[i]}" for i in at]
    assert table["label"].tolist() == [f"l{y[i]}" for i in at]
    right = at // SAMPLES % WAYS
    sure = wrong[at]
    assert (table["other"][sure] == [f"l{n}" for n in right[sure]]).mean() > 0.9
