"""A head for each task: against scikit-learn, and its gradient against differences of the minimum."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import check_grad
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight
from torch.nn import functional as F

from mela.errors import DivergedError
from mela.evaluation.rules import own_rule
from mela.learners.task_heads import TaskHeads
from mela.training.embeddings import train_embedding
from mela.training.loop import Training
from mela.training.on_tasks import train_on_tasks
from tests.helpers.embedding import IMAGES, WAYS, backbone, episodes, features, schedule


def test_the_head_of_a_new_task_is_that_of_scikit_learn() -> None:
    support, labels, query, _ = features(dtype=torch.float64)
    found = TaskHeads(backbone()).logits(support, labels, query, WAYS)
    for task in range(len(support)):
        units, asked = (F.normalize(one[task], dim=1).numpy() for one in (support, query))
        head = LogisticRegression(C=1.0, max_iter=10**5, tol=1e-10).fit(units, labels[task].numpy())
        expected = head.decision_function(asked)
        # logits may differ by what is the same for all classes
        np.testing.assert_allclose(_centred(found[task].numpy()), _centred(expected), atol=1e-5)


def _centred(logits: np.ndarray) -> np.ndarray:
    return logits - logits.mean(axis=1, keepdims=True)


def test_the_loss_is_of_all_images_of_a_task() -> None:
    support, labels, query, asked = features(dtype=torch.float64)
    learner = TaskHeads(backbone())
    images, own = torch.cat([support, query], dim=1), torch.cat([labels, asked], dim=1)
    losses, accuracies = learner.losses(images, own, support.shape[1], WAYS)
    again, _ = learner.losses(images, own, 1, WAYS)
    torch.testing.assert_close(losses, again)
    logits = learner.logits(images, own, images, WAYS)
    for task in range(len(images)):
        of_classes = [F.cross_entropy(logits[task][own[task] == k], own[task][own[task] == k]) for k in range(WAYS)]
        torch.testing.assert_close(losses[task], torch.stack(of_classes).mean())
        assert accuracies[task] == (logits[task].argmax(1) == own[task]).float().mean()


@pytest.mark.parametrize("shots", ["equal", "unequal"])
def test_the_gradient_is_that_of_the_least_loss_that_any_heads_have(shots: str) -> None:
    """With the heads held fixed, since they are at their minimum."""
    support, labels, _, _ = features(dtype=torch.float64)
    count = support.shape[1] - (0 if shots == "equal" else 2)
    own_labels, shape = labels[:1, :count], (1, count, support.shape[2])
    known = own_labels[0].numpy()
    assert (len(np.unique(np.bincount(known))) > 1) == (shots == "unequal")
    learner = TaskHeads(backbone())

    def least(values: np.ndarray) -> float:
        units = F.normalize(torch.from_numpy(values).reshape(shape)[0], dim=1).numpy()
        head = LogisticRegression(C=1.0, max_iter=10**5, tol=1e-12, class_weight="balanced").fit(units, known)
        own = -head.predict_log_proba(units)[np.arange(count), known]
        return float(compute_sample_weight("balanced", known) @ own + 0.5 * (head.coef_**2).sum())

    def gradient(values: np.ndarray) -> np.ndarray:
        own = torch.from_numpy(values).reshape(shape).requires_grad_()
        losses, _ = learner.losses(own, own_labels, 1, WAYS)
        (count * losses.sum()).backward()
        assert own.grad is not None
        return own.grad.numpy().ravel()

    start = support[:1, :count].numpy().ravel()
    assert check_grad(least, gradient, start, epsilon=1e-5) < 1e-3 * np.linalg.norm(gradient(start))


def test_tasks_have_heads_of_their_own() -> None:
    support, labels, query, _ = features(dtype=torch.float64)
    learner = TaskHeads(backbone())
    together = learner.logits(support, labels, query, WAYS)
    for task in range(len(support)):
        alone = learner.logits(support[task, None], labels[task, None], query[task, None], WAYS)
        torch.testing.assert_close(together[task, None], alone, atol=1e-6, rtol=1e-6)


def test_it_learns_of_ways_and_shots_that_differ() -> None:
    learner = TaskHeads(backbone())
    tasks, test = episodes([([1, 2, 3], 4), ([2, 2], 3), ([3] * 4, 2)] * 20), episodes([([2, 2, 2], 4)] * 30)
    how = Training(stage="embed", schedule=schedule(3, 0.02), seed=0)
    curve = train_on_tasks(learner, IMAGES, tasks, how, tasks_per_epoch=None, tasks_per_step=2)
    assert curve[-1].loss < 0.8 * curve[0].loss
    assert own_rule(learner, IMAGES, test, [2])["accuracy"].mean() > 60


def test_it_trains_initial_embeddings() -> None:
    tasks, how = episodes([([2, 2, 2], 4)] * 6), Training(stage="embed", schedule=schedule(2), seed=0)
    model, learner = backbone(), TaskHeads(backbone())
    options: dict[str, Any] = {"ridge": 0.1, "normalize": False, "tasks_per_epoch": 4}
    curve = train_embedding(model, IMAGES, tasks, how, base_learner="task_heads", **options)
    assert curve == train_on_tasks(learner, IMAGES, tasks, how, tasks_per_epoch=4)
    for name, value in learner.backbone.state_dict().items():
        assert torch.equal(value, model.state_dict()[name])
    assert curve != train_embedding(backbone(), IMAGES, tasks, how, **options), "which is ridge regression"


@pytest.mark.parametrize("wrong", ["too few steps", "not a number"])
def test_a_head_without_a_minimum_names_the_task(wrong: str) -> None:
    learner = TaskHeads(backbone())
    if wrong == "too few steps":
        learner.max_iter = 1
        steps, largest = "1 of 1", r"[\d.]+"
    else:
        torch.nn.init.constant_([*learner.backbone.parameters()][-1], torch.nan)
        steps, largest = "0 of 1000", "nan"
    how = Training(stage="embed", schedule=schedule(1), seed=0)
    said = rf"logistic regression on 18 samples failed in {steps} steps \(largest feature {largest}, C=1\)"
    with pytest.raises(DivergedError, match=rf"^embed: task \d+: {said}; lower embed.learning_rate"):
        train_on_tasks(learner, IMAGES, episodes([([2, 2, 2], 4)] * 3), how, tasks_per_epoch=None)
