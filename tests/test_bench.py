"""The bench's own arithmetic, and its three implementations against each other at a small size."""

import numpy as np
import pytest

from bench import labeler
from bench.measure import alternate, peak_growth, record


def test_record_gives_the_ratio_and_where_it_was_measured() -> None:
    row = record("a_vs_b", 3.0, 2.0, unit="s", n=5, tasks=7)
    assert (row["ratio"], row["tasks"], row["unit"], row["n"]) == (1.5, 7, "s", 5)
    assert row["hardware"].endswith("cores")
    assert {"python", "numpy", "scikit-learn"} == set(row["versions"])


def test_functions_take_turns_after_a_round_that_is_not_counted() -> None:
    calls: list[str] = []
    times = alternate(lambda: calls.append("a"), lambda: calls.append("b"), n=3)
    assert calls == ["a", "b"] * 4
    assert len(times) == 2
    assert all(0 <= taken < 1 for taken in times)


def test_peak_growth_sees_an_array() -> None:
    # 64 MB, written to so that it is really there
    assert 60e6 < peak_growth(lambda: np.ones(8_000_000)) < 80e6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ours_and_the_loop_agree(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    monkeypatch.setattr(labeler, "CLUSTERS", 40)
    monkeypatch.setattr(labeler, "DIMENSIONS", 12)
    points = labeler.class_points(60, dtype)
    assignments, centroids = labeler.blocked(points, points[:40].copy())
    wanted, moved = labeler.loop(points, points[:40].copy())
    assert assignments.tolist() == wanted.tolist()
    np.testing.assert_allclose(centroids, moved, rtol=0, atol=1e-5)
    assert points.dtype == dtype
