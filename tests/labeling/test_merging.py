"""Merging, against enumerated posteriors and on tasks whose classes are known."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from mela.errors import MelaError
from mela.labeling import merge_odds, merging, partition
from mela.labeling import space as discriminant
from mela.labeling.clusters import Clusters, Meetings, collect, cut, meeting_odds, meeting_rate, meetings
from mela.labeling.merge_odds import agglomerate, marginal, most_probable
from mela.labeling.merging import Merged, left_out, merge_classes
from mela.labeling.space import noise_scales, space_of
from mela.labeling.task_classes import ClassMeans, TaskSamples, class_means, group_samples


def grouped(features: np.ndarray, rows: np.ndarray, starts: np.ndarray) -> tuple[TaskSamples, ClassMeans]:
    tasks = np.searchsorted(starts, rows, side="right") - 1
    samples = group_samples(features, np.arange(len(rows)), tasks, rows)
    return samples, class_means(samples)


def merged(features: np.ndarray, rows: np.ndarray, starts: np.ndarray) -> Merged:
    return merge_classes(*grouped(features, rows, starts))


def drawn_tasks(
    seed: int, *, n_classes: int, n_tasks: int, distance: float, ways: int = 5, samples: int = 8, dimensions: int = 12
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features, task class of each sample, starts, true class of each task class; classes differ in shape."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_classes, dimensions)) * distance
    shapes = np.exp(rng.normal(size=(n_classes, dimensions)) / 3)
    truth = np.concatenate([rng.choice(n_classes, size=ways, replace=False) for _ in range(n_tasks)])
    rows = np.repeat(np.arange(len(truth)), samples)
    features = centers[truth[rows]] + rng.normal(size=(len(rows), dimensions)) * shapes[truth[rows]]
    return features, rows, np.arange(0, len(truth) + 1, ways), truth


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_classes", "n_tasks"), [(10, 40), (30, 60), (30, 400)])
def test_finds_the_classes_and_their_number(n_classes: int, n_tasks: int, seed: int) -> None:
    features, rows, starts, truth = drawn_tasks(seed, n_classes=n_classes, n_tasks=n_tasks, distance=1.5)
    found = merged(features, rows, starts).assignments
    assert found.max() + 1 == n_classes
    assert adjusted_rand_score(truth, found) > 0.99


def test_from_fragments_when_there_are_many_task_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (merging, partition):
        monkeypatch.setattr(module, "ALL_PAIRS", 500)
    monkeypatch.setattr(merging, "FRAGMENTS", 200)
    features, rows, starts, truth = drawn_tasks(0, n_classes=20, n_tasks=300, distance=1.5)
    found = merged(features, rows, starts).assignments
    used = found >= 0
    assert used.mean() > 0.95
    assert found.max() + 1 == 20
    assert adjusted_rand_score(truth[used], found[used]) > 0.99


@pytest.mark.slow
def test_the_second_phase_joins_what_the_first_left_apart() -> None:
    features, rows, starts, truth = drawn_tasks(1, n_classes=6, n_tasks=400, distance=3, dimensions=6)
    features[np.isin(rows, np.flatnonzero(truth == 0)), 0] *= 4
    found = merged(features, rows, starts)
    assert found.phases[1].n_items > 6
    assert found.phases[1].n_items - found.phases[1].kept == 6
    assert found.assignments.max() + 1 == 6


def test_covariances_of_too_few_samples_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first phase decides where two clusters together have at most as many degrees of freedom as d."""
    looked = []
    normal = merge_odds._log_normal

    def log_normal(differences: np.ndarray, covariances: np.ndarray) -> np.ndarray:
        looked.append(len(differences))
        return normal(differences, covariances)

    monkeypatch.setattr(merge_odds, "_log_normal", log_normal)
    rng, d = np.random.default_rng(0), 6
    degrees = np.array([2.0, 3.0, 4.0, 2.0])
    clusters = Clusters(
        weights=np.ones(4), sums=np.zeros((4, d)), counts=np.ones(4), meetings=Meetings(csr_array((4, 4)))
    )
    deviations = rng.normal(size=(4, 20, d))
    merges = merge_odds.join(clusters, deviations.mT @ deviations, degrees, np.full(d, 9.0), 0.0, 1.0)
    # one pair has seven; its sum joins the others
    assert merges[0][:2] in ((1, 2), (2, 1))
    assert len(merges) == 3
    assert looked[:4] == [1, 1, 1, 1]


def test_marginal_is_that_of_normal_classes() -> None:
    # x_i ~ N(mu, 1), mu ~ N(0, b): the odds of one class against two from the joint densities themselves
    b, left, right = 2.5, np.array([0.3, -0.2, 0.9]), np.array([1.4, 1.1])

    def density(x: np.ndarray) -> float:
        return float(multivariate_normal.logpdf(x, np.zeros(len(x)), np.eye(len(x)) + b))

    def closed(x: np.ndarray) -> float:
        return float(marginal(np.array([float(len(x))]), np.array([[x.sum()]]), np.array([b]))[0])

    both = np.concatenate([left, right])
    assert closed(both) - closed(left) - closed(right) == pytest.approx(density(both) - density(left) - density(right))


def test_meetings_by_hand() -> None:
    met = meetings(np.array([0, 1, 1, 2, 0, 2, -1, -1]), np.array([0, 2, 4, 6, 8]), 3)
    assert met.toarray().tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    odds = meeting_odds(np.array([0.0, 2.0]), 10.0, np.array([20.0, 20.0]), 0.01, wrong=0.01)
    assert odds == pytest.approx([2 * 0.99, 2 * 0.99 - 2 * np.log(100)])


def test_a_meeting_keeps_two_alike_apart() -> None:
    def odds(met: float) -> float:
        clusters = Clusters(
            weights=np.array([5.0, 5.0]),
            sums=np.array([[5.0], [5.0]]),
            counts=np.array([5.0, 5.0]),
            meetings=Meetings(csr_array(np.array([[0, met], [0, 0]]))),
        )
        ((_, _, odds),) = agglomerate(clusters, np.array([10.0]), 0.01, 1.0)
        return odds

    assert odds(0) > 0
    assert odds(3) == pytest.approx(odds(0) - 3 * np.log(100))
    assert odds(3) < 0


def test_cut_follows_chains() -> None:
    assert cut(5, [(1, 0, 3.0), (2, 1, 2.0), (3, 2, 1.0)]).tolist() == [0, 0, 0, 0, 1]
    assert cut(3, []).tolist() == [0, 1, 2]


def test_two_peaks_the_higher_one_is_taken() -> None:
    odds = [3.0, 2.0, -1.0, -3.0, 4.0, 2.5, -0.5, 0.4]
    assert most_probable([(0, i + 1, value) for i, value in enumerate(odds)]) == 6
    odds[4] = -4.0
    assert most_probable([(0, i + 1, value) for i, value in enumerate(odds)]) == 2
    assert most_probable([]) == 0


def test_what_was_merged_wrongly_early_is_put_right() -> None:
    """Without the steps between the phases the partition fits the truth less well, over some seeds together."""
    gained = []
    for seed in range(6):
        features, rows, starts, truth = drawn_tasks(seed, n_classes=15, n_tasks=60, distance=0.6)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(merging, "refine", lambda evidence, clusters: (clusters, 1.0))
            greedy = merged(features, rows, starts).assignments
        found = merged(features, rows, starts).assignments
        gained.append(adjusted_rand_score(truth, found) - adjusted_rand_score(truth, greedy))
    assert np.mean(gained) > 0.01


def test_left_out_against_centers_computed_without_the_task_class() -> None:
    features, rows, starts, _ = drawn_tasks(4, n_classes=8, n_tasks=20, distance=0.4)
    _, classes = grouped(features, rows, starts)
    # clusters by hand, two of a single task class, one that nobody has, and some task classes in none
    points, clusters = classes.means, np.random.default_rng(0).integers(-1, 9, size=len(classes.means))
    clusters[clusters == 5] = 6
    clusters[:2] = [9, 10]
    wanted = []
    for row, point in enumerate(points):
        centers = np.full((11, len(point)), np.inf)
        for cluster in range(11):
            members = np.flatnonzero((clusters == cluster) & (np.arange(len(clusters)) != row))
            if len(members):
                centers[cluster] = np.average(points[members], axis=0, weights=classes.sizes[members])
        wanted.append(int(((point - centers) ** 2).sum(axis=1).argmin()))
    found = left_out(points, classes.sizes, clusters)
    assert found.tolist() == wanted
    assert (found[:2] != [9, 10]).all()
    assert 5 not in found


def test_meetings_are_expected_by_the_pairs_of_each_task() -> None:
    """Half of the tasks have one class, and no two classes can meet there."""
    ways = np.array([1, 5] * 40)
    classes = ClassMeans(
        task_ids=np.repeat(np.arange(80), ways),
        starts=np.concatenate([[0], np.cumsum(ways)]),
        means=np.zeros((240, 1)),
        sizes=np.ones(240, dtype=np.int64),
    )
    # of two classes in 48 of the 240 task classes each: by hand, 40 tasks with 20 ordered pairs each of 240 * 240
    assert 48 * 48 * meeting_rate(classes.starts) == pytest.approx(48 * 48 * 40 * 20 / 240**2)
    even = np.arange(0, 241, 5)
    assert meeting_rate(even) == pytest.approx(4 / (5 * 48))


def test_single_samples_cannot_be_merged() -> None:
    features = np.random.default_rng(0).normal(size=(20, 3))
    message = r"^merging: each of the 20 task classes"
    with pytest.raises(MelaError, match=message):
        merged(features, np.arange(20), np.arange(0, 21, 4))


def test_space_drops_what_noise_alone_would_show() -> None:
    rng = np.random.default_rng(0)
    features, rows, _, truth = drawn_tasks(3, n_classes=20, n_tasks=200, distance=0.0)
    features[:, :3] += (rng.normal(size=(20, 3)) * 3)[truth[rows]]
    means = np.stack([features[rows == row].mean(axis=0) for row in range(len(truth))])
    residuals = features - means[rows]
    freedom = len(rows) - len(truth)
    space = space_of(means, residuals.T @ residuals / freedom / 8, freedom)
    assert space.components.shape == (12, 3)
    within = residuals @ space.components / np.sqrt(8)
    np.testing.assert_allclose(within.T @ within / (len(rows) - len(truth)), np.eye(3), atol=1e-4)


def test_parts_of_the_task_classes_do_not_show_in_their_space(monkeypatch: pytest.MonkeyPatch) -> None:
    samples, classes = grouped(*drawn_tasks(0, n_classes=20, n_tasks=60, distance=1.5)[:3])
    whole = discriminant.sample_space(samples, classes)
    monkeypatch.setattr(discriminant, "BLOCK", 7)
    parts = discriminant.sample_space(samples, classes)
    np.testing.assert_allclose(parts.between, whole.between, rtol=1e-10)
    points = whole.transform(classes.means)
    np.testing.assert_allclose(np.abs(parts.transform(classes.means)), np.abs(points), rtol=0, atol=1e-8)
    np.testing.assert_allclose(np.corrcoef(points.T), np.eye(points.shape[1]), rtol=0, atol=1e-8)


@pytest.mark.parametrize("block", [1, 5])
def test_blocks_of_pairs_do_not_show_in_the_merges(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    rng = np.random.default_rng(0)
    points, starts = rng.normal(size=(60, 4)) * 3, np.arange(0, 61, 5)

    def merges() -> list[tuple[int, int, float]]:
        start = collect(np.arange(60), points, np.exp(np.linspace(-1, 1, 60)), starts)
        return agglomerate(start, np.full(4, 5.0), 1e-2, 1.0)

    whole = merges()
    monkeypatch.setattr(merge_odds, "BLOCK", block)
    assert merges() == whole
    assert len(whole) > 30


def test_noise_scales_of_equal_samples_beside_enormously_different_ones() -> None:
    freedom, small = np.full(4, 4.0), np.array([0, 5, 6, 7.0])
    assert (noise_scales(small, freedom, 3) > 0).all()
    for outlier in (1e9, 1e20):
        with pytest.raises(MelaError, match=r"1 of 4 task classes have equal samples"):
            noise_scales(np.array([0, outlier, 1, 1]), freedom, 3)


def test_noise_scales_shrink_to_one_when_chance_explains_them() -> None:
    rng = np.random.default_rng(0)
    rows, freedom = np.repeat(np.arange(300), 6), np.full(300, 5.0)
    squares = rng.chisquare(10, size=1800) * 5 / 6
    equal = noise_scales(np.bincount(rows, squares), freedom, 10)
    assert equal.std() < 0.05
    scale = np.repeat(rng.choice([0.5, 1.5], size=300), 6)
    squares = scale * rng.chisquare(10, size=1800) * 5 / 6
    unequal = noise_scales(np.bincount(rows, squares), freedom, 10)
    # variances: 0.25 of the scales, 0.05 of their estimates from 50 degrees of freedom; sqrt(0.25 / 0.3) = 0.91
    assert np.corrcoef(unequal, scale[::6])[0, 1] == pytest.approx(0.91, abs=0.03)
