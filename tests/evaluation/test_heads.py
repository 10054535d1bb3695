"""Test-time heads against scikit-learn and easyfsl, task by task."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestCentroid
from sklearn.svm import SVC

from mela.errors import MelaError
from mela.evaluation import heads
from mela.evaluation.heads import HEADS, in_blocks

WAYS, TASKS = 5, 7
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


def tasks(shots: int = 3, queries: int = 6, spread: float = 0.6) -> tuple[Floats, Ints, Floats, Ints]:
    """Features of length 1 of some tasks, whose classes overlap."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(TASKS, WAYS, 8))

    def drawn(count: int) -> tuple[Floats, Ints]:
        labels = np.stack([rng.permutation(WAYS * count) % WAYS for _ in range(TASKS)])
        points = centres[np.arange(TASKS)[:, None], labels] + spread * rng.normal(size=(*labels.shape, 8))
        return (points / np.linalg.norm(points, axis=2, keepdims=True)).astype(np.float32), labels

    support, labels = drawn(shots)
    query, asked = drawn(queries)
    return support, labels, query, asked


def one_by_one(name: str, support: Floats, labels: Ints, query: Floats) -> Ints:
    if name == "logistic":
        return LogisticRegression(C=1, max_iter=1000, tol=1e-8).fit(support, labels).predict(query)
    if name == "centroid":
        if len(labels) == WAYS:
            # scikit-learn's takes no classes of one image, whose variances it wants
            return labels[np.square(query[:, None] - support).sum(2).argmin(1)]
        return NearestCentroid().fit(support, labels).predict(query)
    if name == "svm":
        return SVC(kernel="linear", C=1).fit(support, labels).predict(query)
    if name == "cosine":
        means = np.stack([support[labels == way].mean(0) for way in range(WAYS)])
        return cosine_similarity(query, means).argmax(1)
    design, asked = (np.pad(x, ((0, 0), (0, 1)), constant_values=1) for x in (support, query))
    return Ridge(alpha=1, fit_intercept=False).fit(design, np.eye(WAYS)[labels]).predict(asked).argmax(1)


@pytest.mark.parametrize("shots", [1, 3])
@pytest.mark.parametrize("name", [name for name in HEADS if name != "transductive"])
def test_heads_are_those_of_scikit_learn(name: str, shots: int) -> None:
    support, labels, query, _ = tasks(shots)
    found = HEADS[name](support, labels, query, WAYS)
    expected = np.stack([one_by_one(name, *task) for task in zip(support, labels, query, strict=True)])
    assert (found == expected).mean() > 0.995
    assert len(np.unique(found)) == WAYS


def test_transductive_head_is_that_of_easyfsl(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = pytest.importorskip("easyfsl.methods")
    # easyfsl has no temperature, and does not move the queries that it labels: so they are where they belong
    monkeypatch.setattr(heads, "TEMPERATURE", 1.0)
    support, labels, query, _ = tasks(1)
    query = (query + support.mean(1, keepdims=True) - query.mean(1, keepdims=True)).astype(np.float32)
    found = heads.rectified_prototypes(support, labels, query, WAYS)
    for task in range(TASKS):
        other = methods.BDCSPN(torch.nn.Identity())
        other.process_support_set(torch.from_numpy(support[task]), torch.from_numpy(labels[task]))
        np.testing.assert_array_equal(found[task], other(torch.from_numpy(query[task])).argmax(1))


def rectified(known: Floats, own: Ints, asked: Floats, temperature: float) -> Ints:
    """What queries are nearest to, once class means count those that are nearest to them."""
    first = np.stack([known[own == way].mean(0) for way in range(WAYS)])
    nearest, means = cosine_similarity(asked, first).argmax(1), []
    for way in range(WAYS):
        members = np.concatenate([known[own == way], asked[nearest == way]])
        weights = np.exp(temperature * cosine_similarity(members, first[[way]]))
        means.append((weights * members).sum(0) / weights.sum())
    return cosine_similarity(asked, np.stack(means)).argmax(1)


def test_transductive_head_moves_the_queries_and_weighs_by_cosine_similarity() -> None:
    support, labels, query, _ = tasks(3)
    query = query + np.float32(0.5)
    found = heads.rectified_prototypes(support, labels, query, WAYS)
    unmoved, alike = [], []
    for known, own, asked, wanted in zip(support, labels, query, found, strict=True):
        moved = asked + known.mean(0) - asked.mean(0)
        np.testing.assert_array_equal(wanted, rectified(known, own, moved, 10))
        unmoved.append((rectified(known, own, asked, 10) == wanted).all())
        alike.append((rectified(known, own, moved, 0) == wanted).all())
    assert not all(unmoved), "where queries lie would make no difference"
    assert not all(alike), "the temperature would make no difference"


def test_the_other_queries_help_the_transductive_head_alone() -> None:
    support, labels, query, asked = tasks(1, 15)
    accuracies = {name: (head(support, labels, query, WAYS) == asked).mean() for name, head in HEADS.items()}
    assert accuracies["transductive"] > accuracies["cosine"] + 0.02
    for name, head in HEADS.items():
        alone = np.concatenate([head(support, labels, query[:, [i]], WAYS) for i in range(4)], axis=1)
        assert (alone == head(support, labels, query, WAYS)[:, :4]).all() == (name != "transductive"), name


@pytest.mark.parametrize("name", HEADS)
def test_blocks_of_tasks_make_no_difference(name: str) -> None:
    support, labels, query, _ = tasks()
    whole = HEADS[name](support, labels, query, WAYS)
    for size in (1, 3, 100):
        np.testing.assert_array_equal(in_blocks(HEADS[name], support, labels, query, WAYS, size=size), whole)


def test_features_that_no_head_can_be_found_for() -> None:
    support, labels, query, _ = tasks()
    support[0, 0] = np.nan
    with pytest.raises(MelaError, match=r"^logistic head: it did not converge in 1000 steps"):
        heads.logistic(support, labels, query, WAYS)
