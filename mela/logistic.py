"""The meta-test head: logistic regression, by scikit-learn, of one task."""

import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def l2_normalize(features: Floats) -> Floats:
    """Rows (n, m) scaled to length 1; a zero row stays zero."""
    norms = np.linalg.norm(features, axis=1, keepdims=True).astype(features.dtype)
    norms[norms == 0] = 1
    return features / norms


def fit_head(support: Floats, labels: Ints, *, C: float, max_iter: int) -> "LogisticRegression":
    """Multinomial logistic regression on the support set (Eq. 8).

    Classes weigh the same whatever their shots. Where the shots are equal, as in a benchmark, that changes nothing;
    where they are not, features of length 1 and C = 1 would let the class with most images win nearly every query.

    Parameters
    ----------
    support : float (n, m)
        Features as they shall be used (normalised, say).
    labels : int64 (n,)
        At least two different ones.
    C : float
        Inverse regularisation as scikit-learn has it: the penalty is ``|W|^2 / (2 C)`` on the summed cross-entropy.
    max_iter : int
        Of lbfgs.

    Raises
    ------
    ConvergenceWarning
        The solver did not converge within `max_iter` iterations.
    """
    # importing it takes longer than `mela.batched_logistic` takes for all tasks
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    # for two labels scikit-learn penalises the difference of their weights, whose square is twice |W|^2
    penalty = 2 * C if len(np.unique(labels)) == 2 else C
    head = LogisticRegression(C=penalty, max_iter=max_iter, class_weight="balanced")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return head.fit(support, labels)
