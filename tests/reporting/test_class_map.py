"""Classes in two dimensions."""

import numpy as np
import pandas as pd
import pytest

from mela.reporting.class_map import draw_points, neighbourhoods


def blobs(classes: int, each: int, distance: float = 8.0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(classes), each)
    features = distance * np.eye(classes)[labels] + generator.normal(size=(len(labels), classes))
    return features.astype(np.float32), labels


def test_images_of_one_class_lie_together() -> None:
    features, labels = blobs(6, 15)
    points = neighbourhoods(features, seed=0)
    distances = np.linalg.norm(points[:, None] - points[None], axis=2) + 9 * np.eye(len(points))
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.98


def test_points_fill_the_unit_square_and_are_the_same_twice() -> None:
    features, _ = blobs(3, 10)
    points = neighbourhoods(features, seed=0)
    assert points.min() >= 0
    assert points.max() <= 1
    assert np.ptp(points, axis=0).max() == pytest.approx(1)
    np.testing.assert_array_equal(points, neighbourhoods(features, seed=0))


def test_the_length_of_features_does_not_matter() -> None:
    features, _ = blobs(3, 10)
    np.testing.assert_allclose(neighbourhoods(features, seed=0), neighbourhoods(4 * features, seed=0), atol=1e-4)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_few_points_and_one_dimension(n: int) -> None:
    for m in (1, 2, 7):
        points = neighbourhoods(np.random.default_rng(0).normal(size=(n, m)).astype(np.float32), seed=0)
        assert points.shape == (n, 2)
        assert np.isfinite(points).all()


def test_some_classes_and_some_images_of_each_are_drawn() -> None:
    labels = pd.DataFrame({"image_id": np.arange(100), "label": np.arange(100) % 10})
    drawn = draw_points(labels, classes=4, images=3, seed=1)
    assert drawn["label"].value_counts().tolist() == [3] * 4
    assert drawn.merge(labels)["image_id"].nunique() == 12
    assert drawn.equals(draw_points(labels, classes=4, images=3, seed=1))
    assert not drawn.equals(draw_points(labels, classes=4, images=3, seed=2))
    assert len(draw_points(labels, classes=99, images=99, seed=1)) == 100
