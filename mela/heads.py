"""Test-time heads: rules that label the query images of a task by features that stay as they are.

Each takes t tasks of one shape: support features (t, n, m), labels (t, n) from 0 to ways - 1, and query features
(t, q, m), all scaled to length 1 by whoever calls, and gives predicted labels (t, q).
"""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from mela.batched_logistic import fit_heads
from mela.errors import MelaError
from mela.learner import one_hot, prototypes
from mela.ridge import ridge_outputs
from mela.threads import on_all_threads

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Head = Callable[[Floats, Ints, Floats, int], Ints]

C = 1.0
MAX_ITER = 1000
RIDGE = 1.0
TEMPERATURE = 10.0


def logistic(support: Floats, labels: Ints, query: Floats, ways: int) -> Ints:
    """Multinomial logistic regression (Eq. 8), the head of RFS; see `mela.batched_logistic`."""
    heads = fit_heads(support, labels, ways, C=C, max_iter=MAX_ITER)
    if not heads.converged.all():
        raise MelaError(f"logistic head: expected to converge in {MAX_ITER} steps, did not; the features may be NaN")
    return heads.logits(query).argmax(axis=1)


def centroid(support: Floats, labels: Ints, query: Floats, ways: int) -> Ints:
    """The class whose mean is nearest."""
    means, asked = _means(support, labels, ways), torch.from_numpy(query)
    return torch.cdist(asked, means).argmin(2).numpy()


def cosine(support: Floats, labels: Ints, query: Floats, ways: int) -> Ints:
    """The class whose mean has the largest cosine."""
    means = F.normalize(_means(support, labels, ways), dim=2)
    return (torch.from_numpy(query) @ means.mT).argmax(2).numpy()


def ridge_regression(support: Floats, labels: Ints, query: Floats, ways: int) -> Ints:
    """The largest output of ridge regression to one-hot labels, lambda = 1."""
    known, own, asked = (torch.from_numpy(array) for array in (support, labels, query))
    return ridge_outputs(known, own, asked, ways, RIDGE).argmax(2).numpy()


def svm(support: Floats, labels: Ints, query: Floats, ways: int) -> Ints:
    """scikit-learn's linear support vector machine, one against one, C = 1."""
    from sklearn.svm import SVC

    found = np.empty(query.shape[:2], dtype=np.int64)
    for task, (vectors, own, asked) in enumerate(zip(support, labels, query, strict=True)):
        found[task] = SVC(kernel="linear", C=C).fit(vectors, own).predict(asked)
    return found


def rectified_prototypes(support: Floats, labels: Ints, query: Floats, ways: int) -> Ints:
    """Transductive: class means that the query images of the task have a say in (BD-CSPN; Liu, Song and Qin, 2020).

    All query features move by the difference between the mean of the support set and theirs. Then each class's mean
    becomes that of its support images and of all queries that are nearest to it, weighted by the exponential of ten
    times their cosines with the first mean. Nearest is what has the largest cosine.
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


def _means(support: Floats, labels: Ints, ways: int) -> Tensor:
    return prototypes(torch.from_numpy(support), torch.from_numpy(labels), ways)


HEADS: Mapping[str, Head] = {
    "logistic": logistic,
    "centroid": centroid,
    "cosine": cosine,
    "ridge": ridge_regression,
    "svm": svm,
    "transductive": rectified_prototypes,
}


def in_blocks(head: Head, support: Floats, labels: Ints, query: Floats, ways: int, *, size: int = 32) -> Ints:
    """What a head predicts for many tasks, some at a time, on all threads that torch may use."""
    starts = range(0, len(support), size)

    def some(start: int) -> Ints:
        rows = slice(start, start + size)
        return head(support[rows], labels[rows], query[rows], ways)

    return np.concatenate(on_all_threads(some, starts))
