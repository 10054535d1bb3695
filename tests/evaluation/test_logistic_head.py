"""The meta-test head of a single task against the minimum of Eq. 8."""

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import softmax
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mela.evaluation.heads import fit_head, l2_normalize
from mela.learners.logistic import fit_heads

Task = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.float32], npt.NDArray[np.int64]]


def blobs(ways: int, shots: int, queries: int, seed: int = 0) -> Task:
    """A task of overlapping classes in 16 dimensions."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(ways, 16))
    labels, query_labels = np.repeat(np.arange(ways), shots), np.repeat(np.arange(ways), queries)
    support = centers[labels] + 1.5 * rng.normal(size=(len(labels), 16))
    query = centers[query_labels] + 1.5 * rng.normal(size=(len(query_labels), 16))
    return support.astype(np.float32), labels, query.astype(np.float32), query_labels


def probabilities_of_equation_8(task: Task, C: float) -> npt.NDArray[np.float64]:
    """Where the gradient vanishes, as tests/evaluation/test_logistic.py has it."""
    support, labels, query, _ = task
    heads = fit_heads(l2_normalize(support)[None].astype(np.float64), labels[None], labels.max() + 1, C=C, max_iter=100)
    return softmax(heads.logits(l2_normalize(query)[None])[0], axis=0).T


def fitted(support: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], C: float = 1.0) -> LogisticRegression:
    return fit_head(l2_normalize(support), labels, C=C, max_iter=1000)


@pytest.mark.parametrize("C", [0.1, 1.0, 20.0])
@pytest.mark.parametrize(("ways", "shots"), [(2, 1), (2, 5), (3, 1), (5, 5)])
def test_solves_equation_8(ways: int, shots: int, C: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once scikit-learn goes on until the minimum is found to many digits."""
    monkeypatch.setattr(linear_model, "LogisticRegression", partial(LogisticRegression, tol=1e-7))
    support, labels, query, query_labels = task = blobs(ways, shots, 60)
    expected = probabilities_of_equation_8(task, C)
    head = fitted(support.astype(np.float64), labels, C)
    np.testing.assert_allclose(head.predict_proba(l2_normalize(query)), expected, rtol=0, atol=1e-4)
    assert head.score(l2_normalize(query), query_labels) == (expected.argmax(1) == query_labels).mean()


@pytest.mark.parametrize(("ways", "shots"), [(2, 5), (5, 1), (5, 5)])
def test_default_tolerance_is_close_to_the_minimum(ways: int, shots: int) -> None:
    support, labels, query, _ = task = blobs(ways, shots, 60)
    found = fitted(support, labels).predict_proba(l2_normalize(query))
    np.testing.assert_allclose(found, probabilities_of_equation_8(task, 1.0), rtol=0, atol=1e-3)


def test_classes_weigh_the_same_whatever_their_shots() -> None:
    support, labels, query, query_labels = blobs(3, 5, 60)
    kept = np.array([0, 5, 6, 10, 11, 12, 13])
    expected = probabilities_of_equation_8((support[kept], labels[kept], query, query_labels), 1.0)
    np.testing.assert_array_equal(fitted(support[kept], labels[kept]).predict(l2_normalize(query)), expected.argmax(1))


def test_names_of_labels_and_lengths_of_features_have_no_effect() -> None:
    support, labels, query, query_labels = blobs(5, 5, 60)
    plain = fitted(support, labels).predict(l2_normalize(query))
    assert 0.2 < (plain == query_labels).mean() < 1
    names = np.array([7, 3, 11, 0, 5])
    np.testing.assert_array_equal(fitted(support, names[labels]).predict(l2_normalize(query)), names[plain])
    factors = np.float32(2.0) ** np.arange(len(support), dtype=np.float32)[:, None]
    np.testing.assert_array_equal(l2_normalize(support * factors), l2_normalize(support))
    np.testing.assert_array_equal(fitted(support * factors, labels).predict(l2_normalize(query / 8)), plain)


def test_normalised_rows() -> None:
    rows = np.array([[3, 4], [0, 0], [-2, 0]], dtype=np.float32)
    before = rows.copy()
    normalised = l2_normalize(rows)
    assert normalised.dtype == np.float32
    np.testing.assert_array_equal(normalised, np.array([[0.6, 0.8], [0, 0], [-1, 0]], dtype=np.float32))
    np.testing.assert_array_equal(rows, before)


def test_no_convergence_is_an_error() -> None:
    with pytest.raises(ConvergenceWarning, match=r"^lbfgs failed to converge"):
        fit_head(*blobs(5, 5, 15)[:2], C=100.0, max_iter=1)
