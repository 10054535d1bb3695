"""Images of none of the classes: scores by hand and by scikit-learn, thresholds, and what test tasks say of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity

from mela.evaluation.unknown import REFUSED, auroc, class_cosines, known_and_unknown, thresholded


def units(rng: np.random.Generator, *shape: int) -> np.ndarray:
    points = rng.normal(size=shape)
    return (points / np.linalg.norm(points, axis=-1, keepdims=True)).astype(np.float32)


def test_cosines_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    support, query = units(rng, 3, 12, 8), units(rng, 3, 5, 8)
    labels = np.array([rng.permutation(np.arange(12) % 4) for _ in range(3)])
    found = class_cosines(support, labels, query, 4)
    for task in range(3):
        means = [support[task][labels[task] == label].mean(axis=0) for label in range(4)]
        np.testing.assert_allclose(found[task], cosine_similarity(means, query[task]), atol=1e-6)


def test_a_mean_without_direction_is_near_nothing() -> None:
    support = np.array([[[1, 0], [-1, 0]]], dtype=np.float32)
    np.testing.assert_array_equal(class_cosines(support, np.array([[0, 0]]), support, 1), [[[0, 0]]])


def test_a_query_is_unknown_to_the_other_classes_of_its_task() -> None:
    cosines = np.array([[[0.9, 0.3, 0.2], [0.4, 0.5, 0.6], [0.1, 0.7, 0.8]]])
    known, unknown = known_and_unknown([(cosines, np.array([[0, 1, 2]])), (cosines, np.array([[2, 2, 0]]))])
    np.testing.assert_array_equal(known, [0.9, 0.7, 0.8, 0.9, 0.7, 0.8])
    np.testing.assert_array_equal(unknown, [0.4, 0.7, 0.6, 0.9, 0.5, 0.8])
    assert [len(scores) for scores in known_and_unknown([])] == [0, 0]


def parts(seed: int, noise: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Fifty tasks of four classes: features around class means in sixteen dimensions."""
    rng = np.random.default_rng(seed)
    means, labels = units(rng, 50, 4, 16), np.arange(40)[None].repeat(50, axis=0) % 4
    drawn = np.take_along_axis(means, labels[..., None], axis=1) + noise * rng.normal(size=(50, 40, 16))
    query = (drawn / np.linalg.norm(drawn, axis=2, keepdims=True)).astype(np.float32)
    return [(class_cosines(means, np.arange(4)[None].repeat(50, axis=0), query, 4), labels)]


def test_a_threshold_refuses_as_many_as_it_says() -> None:
    found = thresholded(parts(0, 0.1), parts(1, 0.1))
    assert found["threshold"] == np.quantile(known_and_unknown(parts(0, 0.1))[0], REFUSED)
    # 2,000 queries of tasks that are like those of validation
    assert found["refused"] == pytest.approx(100 * REFUSED, abs=2)
    assert found["found"] is not None
    assert found["found"] > 90
    blurred = thresholded(parts(0, 0.3), parts(1, 0.3))
    assert blurred["auroc"] is not None
    assert 0.5 < blurred["auroc"] < found["auroc"] <= 1
    assert blurred["refused"] == pytest.approx(100 * REFUSED, abs=2)


def test_without_tasks_there_is_nothing_to_tell() -> None:
    nothing = dict.fromkeys(("threshold", "refused", "found", "auroc"))
    assert thresholded([], []) == nothing
    one_sided = thresholded(parts(0, 0.1), [])
    assert one_sided == nothing | {"threshold": one_sided["threshold"]}


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_the_area_is_that_of_scikit_learn(known: list[int], unknown: list[int]) -> None:
    truth = [1] * len(known) + [0] * len(unknown)
    expected = roc_auc_score(truth, known + unknown)
    assert auroc(np.array(known, dtype=float), np.array(unknown, dtype=float)) == pytest.approx(expected)
