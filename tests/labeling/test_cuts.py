"""Cuts through a tree of task classes."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from mela.data.array_types import Ints
from mela.labeling.cuts import Cuts
from mela.labeling.pair_quality import pair_quality

CLASSES, WAYS, TASKS = 30, 5, 60
STARTS = np.arange(0, TASKS * WAYS + 1, WAYS)


def drawn(seed: int, spread: float = 0.5) -> tuple[Cuts, Ints]:
    """Cuts of task classes about the centers of their classes, and these."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(CLASSES, 8))
    truth = np.concatenate([rng.permutation(CLASSES)[:WAYS] for _ in range(TASKS)])
    points = centers[truth] + spread * rng.normal(size=(len(truth), 8))
    return Cuts.of(linkage(points, "average"), np.arange(len(points)), STARTS), truth


@pytest.mark.parametrize("seed", range(5))
def test_the_finest_cut_is_the_first_that_is_within_an_error_of_the_best(seed: int) -> None:
    cuts, _ = drawn(seed)
    of_each = [pair_quality(cuts.clusters(cut), STARTS) for cut in range(len(cuts.shared))]
    best = max(of_each, key=lambda quality: quality.match)
    for error in (0.0, best.match_error, 2 * best.match_error):
        within = [cut for cut, quality in enumerate(of_each) if quality.match >= best.match - error - 1e-12]
        assert cuts.finest(error + 1e-12) == within[0]
    assert cuts.finest(0.0) <= cuts.best()
    assert cuts.finest(best.match_error) < cuts.best()
    assert cuts.finest(np.inf) == 0


def test_what_the_finest_cut_joins_is_right_where_classes_are_far_apart() -> None:
    cuts, truth = drawn(0, spread=0.01)
    best, finest = cuts.clusters(cuts.best()), cuts.clusters(cuts.finest(pair_quality(truth, STARTS).match_error))
    assert best.max() + 1 == CLASSES
    assert len(np.unique(np.stack([finest, truth]), axis=1).T) == finest.max() + 1 <= 1.5 * CLASSES


@pytest.mark.parametrize("seed", range(3))
def test_cuts_leave_as_many_clusters_as_a_task_has_classes(seed: int) -> None:
    """Features that only tell three kinds of classes apart would make three clusters the best, for tasks of five."""
    rng = np.random.default_rng(seed)
    kinds = np.concatenate([rng.permutation([[0, 0, 1, 1, 2], [0, 1, 1, 2, 2]][rng.integers(2)]) for _ in range(TASKS)])
    points = 8 * rng.normal(size=(3, 8))[kinds] + rng.normal(size=(len(kinds), 8))
    tree, items = linkage(points, "average"), np.arange(len(points))
    of_kinds = pair_quality(fcluster(tree, 3, "maxclust") - 1, STARTS)
    cuts = Cuts.of(tree, items, STARTS)
    assert [cuts.clusters(cut).max() + 1 for cut in (0, len(cuts.shared) - 1)] == [len(points), WAYS]
    assert len(cuts.shared) == len(cuts.matches()) == len(points) - WAYS + 1
    assert of_kinds.match > cuts.matches().max()


def test_a_tree_of_fewer_items_than_ways_has_the_cut_that_joins_nothing() -> None:
    cuts = Cuts.of(linkage(np.arange(3.0)[:, None], "average"), np.array([0, 1, 2, -1, -1]), np.array([0, 5]))
    assert cuts.shared.tolist() == cuts.matches().tolist() == [0.0]
