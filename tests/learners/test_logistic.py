"""Heads of many tasks at once, against scikit-learn one by one."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from mela.evaluation.heads import l2_normalize
from mela.learners.logistic import TOLERANCE, fit_heads

Features = npt.NDArray[np.floating]
Ints = npt.NDArray[np.int64]


def batch(
    *, shots: tuple[int, ...], tasks: int = 6, dimensions: int = 40, dtype: Any = np.float64, seed: int = 0
) -> tuple[Features, Ints, Features]:
    """Support features, their labels and query features of overlapping classes, all of length 1."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(tasks, len(shots), dimensions))
    labels = np.stack([rng.permutation(np.repeat(np.arange(len(shots)), shots)) for _ in range(tasks)])
    which = np.arange(tasks)[:, None]
    support = np.maximum(0, centers[which, labels] + 1.5 * rng.normal(size=(*labels.shape, dimensions)))
    query = np.maximum(0, rng.normal(size=(tasks, 30, dimensions)) + centers[which, rng.integers(len(shots), size=30)])
    return unit(support.astype(dtype)), labels, unit(query.astype(dtype))


def unit(features: Features) -> Features:
    return np.stack([l2_normalize(rows) for rows in features])


def referee(support: Features, labels: Ints, query: Features, C: float) -> npt.NDArray[np.float64]:
    """Probabilities by scikit-learn's Newton solver, to many digits."""
    penalty = 2 * C if len(np.unique(labels)) == 2 else C
    head = LogisticRegression(C=penalty, tol=1e-12, solver="newton-cholesky", max_iter=1000, class_weight="balanced")
    return head.fit(support.astype(np.float64), labels).predict_proba(query.astype(np.float64))


def assert_scikit_learns(support: Features, labels: Ints, query: Features, C: float = 1.0) -> None:
    expected = np.stack([referee(*task, C=C) for task in zip(support, labels, query, strict=True)])
    np.testing.assert_allclose(probabilities(support, labels, query, C), expected, rtol=0, atol=1e-6)


def probabilities(support: Features, labels: Ints, query: Features, C: float) -> npt.NDArray[np.float64]:
    heads = fit_heads(support, labels, int(labels.max()) + 1, C=C, max_iter=100)
    assert heads.converged.all()
    found: npt.NDArray[np.float64] = softmax(heads.logits(query), axis=1).swapaxes(1, 2)
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dimensions", [200, 12], ids=["wide", "more samples than features"])
@pytest.mark.parametrize("shots", [(1, 1), (5, 5), (1, 1, 1, 1, 1), (5, 5, 5, 5, 5), (25,) * 5, (1, 2, 9), (7, 1)])
def test_probabilities_are_scikit_learns(shots: tuple[int, ...], dimensions: int, dtype: Any) -> None:
    assert_scikit_learns(*batch(shots=shots, dimensions=dimensions, dtype=dtype))


@pytest.mark.parametrize("C", [1e-6, 0.1, 20.0, 1e3])
@pytest.mark.parametrize("dimensions", [40, 6])
def test_other_regularisation(C: float, dimensions: int) -> None:
    assert_scikit_learns(*batch(shots=(3, 3, 3, 3), dimensions=dimensions, dtype=np.float32), C=C)


@pytest.mark.parametrize("spread", [1e-2, 1e-4])
def test_features_that_hardly_differ(spread: float) -> None:
    support, labels, query = batch(shots=(5, 5, 5), dtype=np.float32)
    rays = np.random.default_rng(1).normal(size=40)
    support, query = (unit((rays + spread * features).astype(np.float32)) for features in (support, query))
    expected = np.stack([referee(*task, C=1.0) for task in zip(support, labels, query, strict=True)])
    found = probabilities(support, labels, query, C=1.0)
    assert (found.argmax(axis=2) == expected.argmax(axis=2)).mean() > 0.99
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_full_step_would_go_too_far() -> None:
    support, labels, query = batch(shots=(5,) * 30, dimensions=64, dtype=np.float32, tasks=2)
    heads = fit_heads(support, labels, 30, C=1000.0, max_iter=20)
    assert heads.converged.all()
    expected = np.stack([referee(*task, C=1000.0) for task in zip(support, labels, query, strict=True)])
    np.testing.assert_allclose(softmax(heads.logits(query), axis=1).swapaxes(1, 2), expected, rtol=0, atol=1e-5)


def test_few_shot_tasks_take_few_steps() -> None:
    support, labels, _ = batch(shots=(5,) * 5, dimensions=200)
    heads = fit_heads(support, labels, 5, C=1.0, max_iter=100)
    assert heads.iterations <= 6


def slope(support: Features, labels: Ints, weights: Features, intercepts: Features, C: float) -> float:
    """Length of the gradient of F, by its definition, of one task."""
    n, k = len(labels), int(labels.max()) + 1
    shots = np.bincount(labels)
    sample_weights = n / (k * shots[labels])
    logits = support @ weights.T + intercepts[:, 0]
    residual = sample_weights[:, None] * (softmax(logits, axis=1) - np.eye(k)[labels])
    gradient = np.concatenate([(residual.T @ support + weights / C).ravel(), residual.sum(axis=0)])
    return float(np.linalg.norm(gradient))


@pytest.mark.slow
@given(st.integers(0, 1000), st.lists(st.integers(1, 4), min_size=2, max_size=4), st.integers(1, 30), st.floats(-6, 6))
@settings(deadline=None, max_examples=40)
def test_the_gradient_vanishes(seed: int, shots: list[int], dimensions: int, log_c: float) -> None:
    support, labels, _ = batch(shots=tuple(shots), dimensions=dimensions, seed=seed, tasks=2)
    C = 10.0**log_c
    heads = fit_heads(support, labels, len(shots), C=C, max_iter=200)
    # With more samples than dimensions, A is not unique, and the rounding of A G, which grows with C, can keep Newton's
    # method above the tolerance. `converged` has to say so. Of 3,000 such tasks it kept two, both of C above 1.5e4.
    assert C > 1e4 or heads.converged.all()
    for task in np.flatnonzero(heads.converged):
        found = slope(support[task], labels[task], heads.weights[task], heads.intercepts[task], C)
        # what is left of the gradient of b counts once more where features are not centred; weights grow with C
        assert found < 2 * TOLERANCE + 1e-12 * C


def test_rounding_does_not_end_a_newton_step_early() -> None:
    support, labels, _ = batch(shots=(2, 3, 2, 2), dimensions=3, seed=0, tasks=40)
    assert fit_heads(support, labels, 4, C=1e4, max_iter=200).converged.all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "case", ["all the same", "all zero", "one picture in two classes", "copies", "one dimension", "long"]
)
def test_features_that_say_little(case: str, dtype: Any) -> None:
    support, labels, query = batch(shots=(3, 3), dtype=dtype)
    if case == "all the same":
        support[:] = support[:, :1]
    elif case == "all zero":
        support[:] = 0
    elif case == "one picture in two classes":
        support[:, 0] = support[np.arange(6), (labels != labels[:, :1]).argmax(axis=1)]
    elif case == "copies":
        support, labels = np.concatenate([support] * 4, axis=1), np.concatenate([labels] * 4, axis=1)
    elif case == "one dimension":
        support, query = support[:, :, :1], query[:, :, :1]
    else:
        support, query = 100 * support, 100 * query
    assert_scikit_learns(support, labels, query)


def test_a_task_does_not_depend_on_the_others() -> None:
    support, labels, query = batch(shots=(5, 5, 5), tasks=9)
    together = fit_heads(support, labels, 3, C=5.0, max_iter=100).logits(query)
    for task in range(9):
        one = slice(task, task + 1)
        alone = fit_heads(support[one], labels[one], 3, C=5.0, max_iter=100).logits(query[one])
        np.testing.assert_allclose(alone, together[one], rtol=0, atol=1e-12)


def test_names_of_the_classes_do_not_matter() -> None:
    support, labels, query = batch(shots=(2, 4, 3))
    names = np.array([2, 0, 1])
    plain = probabilities(support, labels, query, C=1.0)
    np.testing.assert_allclose(probabilities(support, names[labels], query, C=1.0)[:, :, names], plain, atol=1e-9)


def test_what_has_not_converged_is_told() -> None:
    support, labels, _ = batch(shots=(5, 5, 5))
    support[2] = 0
    heads = fit_heads(support, labels, 3, C=100.0, max_iter=2)
    assert heads.iterations == 2
    assert heads.converged.tolist() == [False, False, True, False, False, False]


def test_features_that_are_not_finite_do_not_converge() -> None:
    support, labels, _ = batch(shots=(5, 5, 5))
    support[4, 3, 2] = np.nan
    heads = fit_heads(support, labels, 3, C=1.0, max_iter=100)
    assert heads.converged.tolist() == [True, True, True, True, False, True]


def test_a_class_without_support() -> None:
    support, labels, _ = batch(shots=(5, 5))
    with pytest.raises(ValueError, match="lacks samples of some of its 3 classes"):
        fit_heads(support, labels, 3, C=1.0, max_iter=10)
