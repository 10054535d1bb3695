"""The meta-test head against Eq. 8, minimised from scratch."""

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize
from scipy.special import log_softmax, softmax
from sklearn import linear_model
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from mela.evaluation.heads import fit_head, l2_normalize

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
    support, labels, query, _ = task
    x = support / np.linalg.norm(support, axis=1, keepdims=True)
    targets = np.eye(labels.max() + 1)[labels]
    shots = targets.sum(0)
    weight = (shots.mean() / shots)[labels]

    def loss_and_gradient(flat: npt.NDArray[np.float64]) -> tuple[float, npt.NDArray[np.float64]]:
        parameters = flat.reshape(17, -1)
        weights, bias = parameters[:16], parameters[16]
        logits = x @ weights + bias
        residual = weight[:, None] * (softmax(logits, axis=1) - targets)
        loss = -weight @ (targets * log_softmax(logits, axis=1)).sum(1) + (weights**2).sum() / (2 * C)
        return float(loss), np.vstack([x.T @ residual + weights / C, residual.sum(0)]).ravel()

    start = np.zeros(17 * targets.shape[1])
    found = optimize.minimize(
        loss_and_gradient, start, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-8, "maxiter": 10_000}
    )
    assert found.success
    parameters = found.x.reshape(17, -1)
    return softmax(query / np.linalg.norm(query, axis=1, keepdims=True) @ parameters[:16] + parameters[16], axis=1)


def head_accuracy(*task: npt.NDArray[Any], C: float, max_iter: int) -> float:
    """On the query set, of the head fitted to the support set."""
    support, labels, query, query_labels = task
    head = fit_head(l2_normalize(support), labels, C=C, max_iter=max_iter)
    return float((head.predict(l2_normalize(query)) == query_labels).mean())


class Recorded(LogisticRegression):
    """Keeps every fitted head."""

    heads: ClassVar[list[LogisticRegression]] = []

    def fit(self, X: Any, y: Any) -> Self:
        self.heads.append(self)
        return super().fit(X, y)


class Exact(Recorded):
    """Goes on until the minimum is found to many digits."""

    def fit(self, X: Any, y: Any) -> Self:
        self.set_params(tol=1e-7)
        return super().fit(X.astype(np.float64), y)


@pytest.mark.parametrize("C", [0.1, 1.0, 20.0])
@pytest.mark.parametrize(("ways", "shots"), [(2, 1), (2, 5), (3, 1), (5, 5)])
def test_solves_equation_8(ways: int, shots: int, C: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_model, "LogisticRegression", Exact)
    task = blobs(ways, shots, 60)
    expected = probabilities_of_equation_8(task, C)

    accuracy = head_accuracy(*task, C=C, max_iter=1000)

    assert accuracy == (expected.argmax(1) == task[3]).mean()
    np.testing.assert_allclose(Recorded.heads[-1].predict_proba(l2_normalize(task[2])), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize(("ways", "shots"), [(2, 5), (5, 1), (5, 5)])
def test_default_tolerance_is_close_to_the_minimum(ways: int, shots: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_model, "LogisticRegression", Recorded)
    task = blobs(ways, shots, 60)
    head_accuracy(*task, C=1.0, max_iter=1000)
    found = Recorded.heads[-1].predict_proba(l2_normalize(task[2]))
    np.testing.assert_allclose(found, probabilities_of_equation_8(task, 1.0), rtol=0, atol=1e-3)


def test_classes_weigh_the_same_whatever_their_shots() -> None:
    support, labels, query, query_labels = blobs(3, 5, 60)
    kept = np.array([0, 5, 6, 10, 11, 12, 13])
    task = support[kept], labels[kept], query, query_labels
    expected = (probabilities_of_equation_8(task, 1.0).argmax(1) == query_labels).mean()
    assert head_accuracy(*task, C=1.0, max_iter=1000) == expected


def test_accuracy_does_not_depend_on_the_labels_used() -> None:
    support, labels, query, query_labels = blobs(5, 5, 60)
    plain = head_accuracy(support, labels, query, query_labels, C=1.0, max_iter=1000)
    names = np.array([7, 3, 11, 0, 5])
    assert head_accuracy(support, names[labels], query, names[query_labels], C=1.0, max_iter=1000) == plain
    assert 0.2 < plain < 1


def test_scaling_features_has_no_effect() -> None:
    support, labels, query, query_labels = blobs(5, 5, 60)
    plain = head_accuracy(support, labels, query, query_labels, C=1.0, max_iter=1000)
    factors = np.float32(2.0) ** np.arange(len(support), dtype=np.float32)[:, None]
    np.testing.assert_array_equal(l2_normalize(support * factors), l2_normalize(support))
    assert head_accuracy(support * factors, labels, query / 8, query_labels, C=1.0, max_iter=1000) == plain


def test_normalised_rows() -> None:
    rows = np.array([[3, 4], [0, 0], [-2, 0]], dtype=np.float32)
    before = rows.copy()
    normalised = l2_normalize(rows)
    assert normalised.dtype == np.float32
    np.testing.assert_array_equal(normalised, np.array([[0.6, 0.8], [0, 0], [-1, 0]], dtype=np.float32))
    np.testing.assert_array_equal(rows, before)


def test_no_convergence_is_an_error() -> None:
    with pytest.raises(ConvergenceWarning, match=r"^lbfgs failed to converge"):
        head_accuracy(*blobs(5, 5, 15), C=100.0, max_iter=1)
