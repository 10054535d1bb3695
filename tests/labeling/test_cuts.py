"""Cuts through a tree of task classes."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

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
