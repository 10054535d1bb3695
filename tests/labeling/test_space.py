"""Coordinates in which clusters of task classes lie apart: what they are, and what they are for new task classes."""

import numpy as np
import pytest
from scipy.linalg import subspace_angles
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mela.labeling.space import discriminant_space

K = 8


def draw(rng: np.random.Generator, centers: np.ndarray, each: int, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`each` task classes of every class, whose deviations have the covariance root.T @ root."""
    clusters = np.arange(len(centers)).repeat(each)
    return centers[clusters] + rng.normal(size=(len(clusters), len(root))) @ root, clusters


def test_with_many_task_classes_it_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    m = 12
    means, clusters = draw(
        rng, rng.normal(size=(K, m)), 400, np.linalg.qr(rng.normal(size=(m, m)))[0] * np.geomspace(0.5, 2, m)
    )
    found = discriminant_space(means, clusters)
    assert found is not None
    assert found.components.shape == (m, K - 1)
    other = LinearDiscriminantAnalysis(solver="svd").fit(means, clusters).scalings_
    assert np.degrees(subspace_angles(found.components, other)).max() < 1
    inside = found.transform(means) - found.transform(means).reshape(K, 400, -1).mean(axis=1).repeat(400, axis=0)
    np.testing.assert_allclose(np.cov(inside.T), np.eye(K - 1), atol=0.06)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("each", [25, 50])
@pytest.mark.parametrize("least", [0.1, 0.5])
def test_new_task_classes_have_unit_variance(least: float, each: int, seed: int) -> None:
    """Of few task classes with 100 features, those known scatter by another variance."""
    rng = np.random.default_rng(seed)
    root = np.diag(np.geomspace(least, 1 / least, 100))
    centers = rng.normal(size=(K, 100))
    means, clusters = draw(rng, centers, each, root)
    new, own = draw(rng, centers, 500, root)
    found = discriminant_space(means, clusters)
    assert found is not None
    known = np.stack([means[clusters == number].mean(axis=0) for number in range(K)])
    deviations = found.transform(new) - found.transform(known)[own]
    # the center is that of a few, too
    assert (deviations**2).mean() / (1 + 1 / each) == pytest.approx(1, abs=0.25)


def test_the_variance_of_classes_is_less_what_few_task_classes_make_of_it() -> None:
    rng = np.random.default_rng(0)
    means, clusters = draw(rng, rng.normal(size=(60, 3)) * [3.0, 1.0, 0.0], 5, np.eye(3))
    found = discriminant_space(means, clusters)
    assert found is not None
    np.testing.assert_allclose(found.between, [9, 1, 0.001], rtol=0.4, atol=0.1)


def test_it_turns_with_the_features_and_scales_with_them() -> None:
    rng = np.random.default_rng(0)
    means, clusters = draw(rng, rng.normal(size=(K, 20)), 10, np.eye(20))
    turn, _ = np.linalg.qr(rng.normal(size=(20, 20)))
    first = discriminant_space(means, clusters)
    assert first is not None
    for scale in (1.0, 1e-6, 1e6):
        again = discriminant_space(means @ turn * scale + 5 * scale, clusters)
        assert again is not None
        # signs of coordinates are free
        np.testing.assert_allclose(
            np.abs(again.transform(means @ turn * scale + 5 * scale)),
            np.abs(first.transform(means)),
            rtol=1e-5,
            atol=1e-6,
        )
        np.testing.assert_allclose(again.between, first.between, rtol=1e-6)


def test_task_classes_alone_in_their_cluster_or_without_one_do_not_count() -> None:
    rng = np.random.default_rng(0)
    means, clusters = draw(rng, rng.normal(size=(K, 10)), 10, np.eye(10))
    far = np.concatenate([means, rng.normal(size=(5, 10)) * 100])
    first = discriminant_space(means, clusters)
    again = discriminant_space(far, np.concatenate([clusters, [K, K + 1, K + 2, -1, -1]]))
    assert first is not None
    assert again is not None
    # others are left out in turn
    np.testing.assert_allclose(np.abs(again.transform(means)), np.abs(first.transform(means)), rtol=0.1, atol=0.1)


@pytest.mark.parametrize(
    ("means", "clusters"),
    [
        (np.random.default_rng(0).normal(size=(6, 3)), [0, 0, 0, 1, -1, 2]),
        (np.random.default_rng(0).normal(size=(6, 3)), [0, 1, 2, 3, 4, 5]),
        (np.repeat([[0.0, 1.0], [2.0, 3.0]], 3, axis=0), [0, 0, 0, 1, 1, 1]),
    ],
    ids=["one cluster of several", "all alone", "equal task classes"],
)
def test_where_there_is_nothing_to_go_by_there_is_none(means: np.ndarray, clusters: list[int]) -> None:
    assert discriminant_space(means, np.array(clusters)) is None


@pytest.mark.parametrize("m", [1, 2, 40])
def test_few_features_or_few_task_classes(m: int) -> None:
    rng = np.random.default_rng(0)
    means, clusters = draw(rng, rng.normal(size=(4, m)) * 5, 2, np.eye(m))
    found = discriminant_space(means, clusters)
    assert found is not None
    assert found.components.shape == (m, min(3, m))
    assert np.isfinite(found.transform(means)).all()
    assert (found.between > 0).all()
