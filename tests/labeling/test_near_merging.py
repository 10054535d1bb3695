"""Merging among neighbours, against merging of all pairs and the posterior itself."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from mela.labeling import memberships, merging, partition, trees
from mela.labeling.clusters import Meetings, cut, meeting_rate, meetings
from mela.labeling.memberships import Memberships
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.near_merging import merge_neighbours
from mela.labeling.partition import Evidence


def drawn(
    seed: int, n_classes: int, n_tasks: int, distance: float, dimensions: int = 16
) -> tuple[Evidence, np.ndarray]:
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, dimensions)) * distance
    truth = np.concatenate([rng.choice(n_classes, size=4, replace=False) for _ in range(n_tasks)])
    weights = np.exp(rng.normal(size=len(truth)) / 4)
    points = centers[truth] + rng.normal(size=(len(truth), dimensions)) / np.sqrt(weights)[:, None]
    starts = np.arange(0, len(truth) + 1, 4)
    between = np.full(dimensions, distance**2)
    return Evidence(points=points, weights=weights, starts=starts, between=between, rate=meeting_rate(starts)), truth


def near(evidence: Evidence, clusters: np.ndarray, gamma: float = 1.0, least: int = 0) -> list[tuple[int, int, float]]:
    own = evidence.points, evidence.weights, evidence.starts
    return merge_neighbours(clusters, *own, evidence.between, evidence.rate, gamma, least)


@pytest.mark.parametrize("seed", range(3))
def test_as_good_as_all_pairs(seed: int) -> None:
    evidence, truth = drawn(seed, n_classes=60, n_tasks=200, distance=1.0)
    single = np.arange(len(truth))
    of_all, _, _ = evidence.merge(single, 1.0)
    found = cut(len(truth), near(evidence, single))
    assert adjusted_rand_score(truth, found) > adjusted_rand_score(truth, of_all) - 0.01
    assert evidence.log_posterior(found) > evidence.log_posterior(of_all) - 0.001 * abs(evidence.log_posterior(of_all))


@pytest.mark.parametrize("gamma", [0.5, 1.0, 50.0])
def test_the_odds_of_merges_are_differences_of_posteriors(gamma: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "evenness", lambda _: gamma)
    evidence, truth = drawn(0, n_classes=20, n_tasks=50, distance=1.0)
    start = np.arange(len(truth))
    start[:8] = -1
    start[start >= 0] -= 8
    merges = near(evidence, start, gamma)
    found = np.where(start >= 0, cut(start.max() + 1, merges)[start], -1)
    gained = evidence.log_posterior(found) - evidence.log_posterior(start)
    assert sum(odds for _, _, odds in merges) == pytest.approx(gained, rel=1e-9)
    assert min(odds for _, _, odds in merges) > 0


def test_merging_stops_where_few_clusters_are_left() -> None:
    evidence, truth = drawn(0, n_classes=60, n_tasks=200, distance=1.0)
    single = np.arange(len(truth))
    every = near(evidence, single)
    ends = len(single) - len(every)
    for least in (ends + 1, 200, 799):
        assert near(evidence, single, least=least) == every[: len(single) - least]
    assert near(evidence, single, least=ends - 1) == every, "no odds are positive before"
    assert near(evidence, single, least=len(single)) == []


def test_meetings_of_merged_clusters() -> None:
    rng = np.random.default_rng(0)
    starts = np.arange(0, 121, 4)
    clusters = np.concatenate([rng.choice(12, size=4, replace=False) for _ in range(30)])
    table = meetings(clusters, starts, 12)
    dense, found = (table + table.T).toarray(), Meetings(table)
    left = list(range(12))
    while len(left) > 2:
        u, v = rng.choice(left, size=2, replace=False).tolist()
        left.remove(v)
        found.absorb(u, v)
        dense[u] += dense[v]
        dense[:, u] = dense[u]
        dense[u, u] = dense[v] = dense[:, v] = 0
        for w in left:
            assert found.with_all(w).tolist() == dense[w].tolist()
            assert found.with_some(w, np.array(left)).tolist() == dense[w, left].tolist()


def test_the_best_of_near_clusters_is_the_best_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    evidence, truth = drawn(0, n_classes=50, n_tasks=150, distance=0.7)
    clusters = np.where(np.random.default_rng(0).random(len(truth)) < 0.1, (truth + 7) % 50, truth)
    model = Memberships.of(evidence.points, evidence.weights, clusters, 50, evidence.between, 1.0)
    known = (evidence.points, evidence.weights, clusters, evidence.starts)
    wanted = model.best(*known)
    monkeypatch.setattr(memberships, "ALL_PAIRS", 10)
    assert (model.best(*known) == wanted).mean() > 0.99
    monkeypatch.setattr(memberships, "NEAR", 50)
    assert (model.best(*known) == wanted).all()


def test_near_clusters_are_the_same_after_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """By their new numbers, where a cluster has vanished; what is near all may be moved to as if asked anew."""
    evidence, truth = drawn(0, n_classes=50, n_tasks=150, distance=0.7)
    clusters = np.where(np.random.default_rng(0).random(len(truth)) < 0.2, (truth + 7) % 50, truth)
    # a cluster of one, which goes to its class
    clusters[clusters > 20] += 1
    clusters[0] = 21
    wanted = evidence.reassign(evidence.reassign(clusters, 1.0)[0], 1.0)[0]
    monkeypatch.setattr(partition, "ALL_PAIRS", 10)
    monkeypatch.setattr(memberships, "NEAR", 51)
    once, left = evidence.reassign(clusters, 1.0)
    assert left is not None
    vanished = clusters.max() - once.max()
    assert vanished > 0
    assert ((left < 0).sum(axis=1) == vanished).all(), "all clusters are near all"
    assert left.max() == once.max()
    again, _ = evidence.reassign(once, 1.0, left)
    assert again.tolist() == wanted.tolist()
    kept, _ = evidence.reassign(once, 1.0, np.full_like(left, -1))
    assert kept.tolist() == once.tolist(), "there is nowhere to go"


@pytest.mark.parametrize("sources", [False, True])
def test_what_is_left_out_goes_to_the_nearest_of_very_many(sources: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    evidence, truth = drawn(0, n_classes=50, n_tasks=150, distance=0.7)
    rng = np.random.default_rng(0)
    clusters, sizes = np.where(rng.random(len(truth)) < 0.2, -1, truth), rng.integers(1, 9, size=len(truth))
    # one class is alone, and a number is unused
    clusters[clusters > 20] += 1
    clusters[np.flatnonzero(clusters == 3)[1:]] = -1
    owners = rng.integers(0, 40, size=len(truth)) if sources else None
    wanted = merging.left_out(evidence.points, sizes, clusters, owners)
    monkeypatch.setattr(merging, "ALL_PAIRS", 10)
    assert merging.left_out(evidence.points, sizes, clusters, owners).tolist() == wanted.tolist()
    assert 0.2 < (wanted == clusters).mean() < 0.8


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits a tenth as high as they are."""
    for module in (partition, merging, memberships, trees):
        monkeypatch.setattr(module, "ALL_PAIRS", 500)
    monkeypatch.setattr(merging, "FRAGMENTS", 400)
    monkeypatch.setattr(merging, "MANY", 10_000)


def samples_of(
    seed: int, n_classes: int, n_tasks: int, *, own: float = 0.0, distance: float = 1.5
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, local labels, tasks, true classes; each task class is off its class by `own` times the noise."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, 16)) * distance
    truth = np.concatenate([rng.choice(n_classes, size=4, replace=False) for _ in range(n_tasks)])
    rows = np.repeat(np.arange(len(truth)), 5)
    means = centers[truth] + own * rng.normal(size=(len(truth), 16))
    return means[rows] + rng.normal(size=(len(rows), 16)), rows % 4, rows // 4, truth


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_more_classes_than_there_can_be_fragments() -> None:
    features, labels, tasks, truth = samples_of(0, 450, 900)
    labeler = MergeLabeler().fit(features, labels, tasks)
    assert adjusted_rand_score(truth, labeler.class_labels_) > 0.99
    assert len(labeler.counts_) == pytest.approx(450, abs=5)
    assert (labeler.class_labels_ >= 0).all()
    assert labeler.merged_.phases[0].n_items == 3600


@pytest.mark.slow
@pytest.mark.usefixtures("few")
def test_many_people_who_differ() -> None:
    """Merging leaves almost every task class alone, and neighbours find most classes as they do among few."""
    features, labels, tasks, truth = samples_of(0, 60, 300, own=1.0)
    labeler = MergeLabeler().fit(features, labels, tasks)
    assert labeler.effects_ is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees, "ALL_PAIRS", 5000)
        other = MergeLabeler().fit(features, labels, tasks)
    assert other.effects_ is not None
    reached, wanted = (adjusted_rand_score(truth, own.effects_.cut) for own in (labeler, other))
    assert reached > wanted - 0.03
