"""Our pass against the loop that Algorithm 2 describes, at a small size."""

import numpy as np
import pytest

from studies.speed import labeler


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
