"""The meta-test head: logistic regression on normalised features, one task at a time."""

import warnings

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def l2_normalize(features: Floats) -> Floats:
    """Rows (n, m) scaled to length 1; a zero row stays zero."""
    norms = np.linalg.norm(features, axis=1, keepdims=True).astype(features.dtype)
    norms[norms == 0] = 1
    return features / norms


def head_accuracy(
    support: Floats, support_labels: Ints, query: Floats, query_labels: Ints, *, C: float, max_iter: int
) -> float:
    """Accuracy on the query set of a multinomial logistic regression fitted to the support set (Eq. 8).

    Classes weigh the same whatever their shots. Where the shots are equal, as in a benchmark, that changes nothing;
    where they are not, features of length 1 and C = 1 would let the class with most images win nearly every query.

    Parameters
    ----------
    support, query : float32 (n_s, m), (n_q, m)
        Features; they are L2-normalised here.
    support_labels, query_labels : int64 (n_s,), (n_q,)
        At least two different support labels.
    C : float
        Inverse regularisation as scikit-learn has it: the penalty is ``|W|^2 / (2 C)`` on the summed cross-entropy.
    max_iter : int
        Of lbfgs.

    Raises
    ------
    RuntimeError
        The solver did not converge within `max_iter` iterations.
    """
    # for two labels scikit-learn penalises the difference of their weights, whose square is twice |W|^2
    penalty = 2 * C if len(np.unique(support_labels)) == 2 else C
    head = LogisticRegression(C=penalty, max_iter=max_iter, class_weight="balanced")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        try:
            head.fit(l2_normalize(support), support_labels)
        except ConvergenceWarning:
            raise RuntimeError(f"logistic regression did not converge in {max_iter} iterations (C={C:g})") from None
    return float((head.predict(l2_normalize(query)) == query_labels).mean())
