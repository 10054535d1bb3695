"""Define test-time heads, which are fitted to the support set of a task on top of an embedding."""

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mela.data.array_types import Features, Ints
from mela.errors import MelaError
from mela.learners.base import one_hot, prototypes
from mela.learners.logistic import fit_heads
from mela.learners.ridge import ridge_outputs
from mela.runtime.threads import on_all_threads

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

Head = Callable[[Features, Ints, Features, int], Ints]

C = 1.0
MAX_ITER = 1000
RIDGE = 1.0
TEMPERATURE = 10.0


def logistic(support: Features, labels: Ints, query: Features, ways: int) -> Ints:
    """Predict by multinomial logistic regression (Eq. 8), the head of RFS; see `mela.learners.logistic`."""
    heads = fit_heads(support, labels, ways, C=C, max_iter=MAX_ITER)
    if not heads.converged.all():
        raise MelaError(
            f"logistic head: it did not converge in {MAX_ITER} steps; check that all features are finite numbers"
        )
    return heads.logits(query).argmax(axis=1)


def centroid(support: Features, labels: Ints, query: Features, ways: int) -> Ints:
    """Predict the class whose mean is nearest."""
    means, asked = _means(support, labels, ways), torch.from_numpy(query)
    return torch.cdist(asked, means).argmin(2).numpy()


def cosine(support: Features, labels: Ints, query: Features, ways: int) -> Ints:
    """Predict the class whose mean has the largest cosine."""
    means = F.normalize(_means(support, labels, ways), dim=2)
    return (torch.from_numpy(query) @ means.mT).argmax(2).numpy()


def ridge_regression(support: Features, labels: Ints, query: Features, ways: int) -> Ints:
    """Predict the class with the largest output of ridge regression to one-hot labels, lambda = 1."""
    known, own, asked = (torch.from_numpy(array) for array in (support, labels, query))
    return ridge_outputs(known, own, asked, ways, RIDGE).argmax(2).numpy()


def svm(support: Features, labels: Ints, query: Features, ways: int) -> Ints:
    """Predict by scikit-learn's linear support vector machine, one against one, C = 1."""
    from sklearn.svm import SVC

    found = np.empty(query.shape[:2], dtype=np.int64)
    for task, (vectors, own, asked) in enumerate(zip(support, labels, query, strict=True)):
        found[task] = SVC(kernel="linear", C=C).fit(vectors, own).predict(asked)
    return found


def rectified_prototypes(support: Features, labels: Ints, query: Features, ways: int) -> Ints:
    """Predict transductively, by class means of support and query images (BD-CSPN; Liu, Song and Qin, 2020).

    All query features move by the difference between the mean of the support set and theirs. Then each class's mean
    becomes that of its support images and of all queries that are nearest to it, weighted by the exponential of ten
    times their cosines with the first mean. The nearest mean has the largest cosine.
    """
    own, known, asked = torch.from_numpy(labels), torch.from_numpy(support), torch.from_numpy(query)
    asked = asked + known.mean(1, keepdim=True) - asked.mean(1, keepdim=True)
    first = F.normalize(prototypes(known, own, ways), dim=2)
    every = torch.cat([known, asked], dim=1)
    cosines = F.normalize(every, dim=2) @ first.mT
    members = one_hot(torch.cat([own, cosines[:, own.shape[1] :].argmax(2)], dim=1), ways)
    shares = members * (TEMPERATURE * cosines).exp()
    means = (shares / shares.sum(1, keepdim=True)).mT @ every
    return (F.normalize(asked, dim=2) @ F.normalize(means, dim=2).mT).argmax(2).numpy()


def _means(support: Features, labels: Ints, ways: int) -> Tensor:
    return prototypes(torch.from_numpy(support), torch.from_numpy(labels), ways)


HEADS: Mapping[str, Head] = {
    "logistic": logistic,
    "centroid": centroid,
    "cosine": cosine,
    "ridge": ridge_regression,
    "svm": svm,
    "transductive": rectified_prototypes,
}


def in_blocks(head: Head, support: Features, labels: Ints, query: Features, ways: int, *, size: int = 32) -> Ints:
    """Predict the labels of many tasks, some at a time, on all threads that torch may use."""
    starts = range(0, len(support), size)

    def some(start: int) -> Ints:
        rows = slice(start, start + size)
        return head(support[rows], labels[rows], query[rows], ways)

    return np.concatenate(on_all_threads(some, starts))


def l2_normalize(features: Features) -> Features:
    """Scale rows (n, m) to length 1; a zero row stays zero."""
    norms = np.linalg.norm(features, axis=1, keepdims=True).astype(features.dtype)
    norms[norms == 0] = 1
    return features / norms


def fit_head(support: Features, labels: Ints, *, C: float, max_iter: int) -> "LogisticRegression":
    """Fit multinomial logistic regression to the support set (Eq. 8).

    Classes weigh the same whatever their shots. With equal shots, as in a benchmark, that changes nothing. With unequal
    ones, features of length 1 and C = 1 would otherwise let the class with most images win nearly every query.

    Parameters
    ----------
    support : float (n, m)
        Features as they shall be used (normalised, say).
    labels : int64 (n,)
        At least two different ones.
    C : float
        Inverse regularisation as scikit-learn has it: the penalty is ``|W|^2 / (2 C)`` on the summed cross-entropy.
    max_iter : int
        Iterations of lbfgs at most.

    Raises
    ------
    ConvergenceWarning
        The solver did not converge within `max_iter` iterations.
    """
    # importing it takes longer than `mela.learners.logistic` takes for all tasks
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    # for two labels scikit-learn penalises the difference of their weights, whose square is twice |W|^2
    penalty = 2 * C if len(np.unique(labels)) == 2 else C
    head = LogisticRegression(C=penalty, max_iter=max_iter, class_weight="balanced")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        return head.fit(support, labels)
