"""Ridge regression against scikit-learn's, and the losses of tasks that come of it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from torch import Tensor
from torch.nn import functional as F

from mela.errors import UnsolvableError
from mela.learners.ridge import pairwise_hinge, ridge, ridge_query_losses, with_intercept


def ridge_query_loss(
    features: Tensor, labels: Tensor, is_support: Tensor, regularizer: float, *, normalize: bool = False
) -> tuple[Tensor, Tensor]:
    """Of a single task whose support images may stand anywhere."""
    order = torch.argsort(~is_support, stable=True)
    ways, n_support = int(labels.max()) + 1, int(is_support.sum())
    losses, accuracies = ridge_query_losses(
        features[order][None], labels[order][None], ways, n_support, regularizer, normalize=normalize
    )
    return losses[0], accuracies[0]


def problem(n: int, m: int, k: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features (n, m) and one-hot targets (n, k) in float64, every class at least once."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.arange(k), torch.randint(k, (n - k,), generator=generator)])
    features = torch.randn(n, m, generator=generator, dtype=torch.float64)
    return features, F.one_hot(labels, k).to(torch.float64)


@pytest.mark.parametrize("regularizer", [1e-3, 0.5, 30.0])
@pytest.mark.parametrize(("n", "m", "k"), [(5, 12, 5), (40, 3, 2), (25, 24, 4)])
def test_equals_scikit_learns(n: int, m: int, k: int, regularizer: float) -> None:
    features, targets = problem(n, m, k)
    design = np.hstack([features.numpy(), np.ones((n, 1))])
    library = Ridge(alpha=regularizer, fit_intercept=False).fit(design, targets.numpy()).coef_.T

    weights = ridge(features, targets, regularizer).numpy()

    assert weights.dtype == np.float64
    assert weights.shape == (m + 1, k)
    np.testing.assert_allclose(weights, library, rtol=1e-9, atol=1e-11)


def test_intercept_column_is_last() -> None:
    torch.testing.assert_close(with_intercept(torch.zeros(2, 3)), torch.tensor([[0.0, 0, 0, 1]] * 2))


def test_normalize_multiplies_the_regularizer_by_n() -> None:
    features, targets = problem(7, 4, 3)
    weights = ridge(features, targets, 0.2, normalize=True)
    assert torch.equal(weights, ridge(features, targets, 0.2 * 7))

    weights.requires_grad_()
    mean_error = (with_intercept(features) @ weights - targets).square().sum(1).mean()
    (gradient,) = torch.autograd.grad(mean_error + 0.2 * weights.square().sum(), weights)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-12)


def test_gradients() -> None:
    features, targets = problem(5, 3, 2)
    features.requires_grad_()
    targets.requires_grad_()
    assert torch.autograd.gradcheck(lambda z, y: ridge(z, y, 0.1), (features, targets))
    assert torch.autograd.gradcheck(lambda z, y: ridge(z, y, 0.1, normalize=True), (features, targets))


def test_query_loss_differentiates_support_and_query() -> None:
    features, targets = problem(9, 3, 3)
    labels, is_support = targets.argmax(1), torch.arange(9) < 5
    features.requires_grad_()
    assert torch.autograd.gradcheck(lambda z: ridge_query_loss(z, labels, is_support, 0.1)[0], (features,))
    (gradient,) = torch.autograd.grad(ridge_query_loss(features, labels, is_support, 0.1)[0], features)
    assert (gradient.abs().sum(1) > 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_does_not_degrade_the_solution(dtype: torch.dtype) -> None:
    features, targets = problem(25, 64, 5)
    features = features.to(dtype)
    plain = ridge(features.float(), targets.float(), 1e-3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        weights = ridge(features, targets.to(dtype), 1e-3)
    assert weights.dtype == torch.float32
    assert torch.equal(weights, plain)
    torch.testing.assert_close(weights.double(), ridge(features.double(), targets, 1e-3), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("broken", "largest"), [(torch.nan, "nan"), (torch.inf, "inf"), (1e30, r"1e\+30")], ids=str)
def test_unsolvable_features_are_an_error(broken: float, largest: str) -> None:
    features, targets = problem(6, 4, 2)
    features = features.float()
    features[3, 1] = broken
    message = rf"ridge regression on 6 samples failed.*feature {largest}, regularizer 0\.001"
    with pytest.raises(ValueError, match=message):
        ridge(features, targets, 1e-3)


@hypothesis_settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), ways=st.integers(2, 6))
def test_query_loss_ignores_the_names_of_classes_and_the_order_of_images(seed: int, ways: int) -> None:
    features, targets = problem(5 * ways, 7, ways, seed)
    labels = targets.argmax(1)
    is_support = torch.arange(5 * ways) < 3 * ways
    generator = torch.Generator().manual_seed(seed)
    names, order = torch.randperm(ways, generator=generator), torch.randperm(5 * ways, generator=generator)

    loss, accuracy = ridge_query_loss(features, labels, is_support, 0.1)
    changed, same = ridge_query_loss(features[order], names[labels[order]], is_support[order], 0.1)

    torch.testing.assert_close(changed, loss)
    assert same == accuracy


def test_unequal_shots() -> None:
    """Classes of 1, 2 and 4 support images, 3, 1 and 2 query images, against scikit-learn's weights."""
    labels = torch.tensor([0, 1, 1, 2, 2, 2, 2, 0, 0, 0, 1, 2, 2])
    is_support = torch.arange(13) < 7
    features = torch.randn(13, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    design, targets = np.hstack([features.numpy(), np.ones((13, 1))]), np.eye(3)[labels.numpy()]
    outputs = Ridge(alpha=0.1, fit_intercept=False).fit(design[:7], targets[:7]).predict(design[7:])

    loss, accuracy = ridge_query_loss(features, labels, is_support, 0.1)

    assert loss.item() == pytest.approx(((outputs - targets[7:]) ** 2).mean(), rel=1e-10)
    assert accuracy.item() == pytest.approx((outputs.argmax(1) == labels[7:].numpy()).mean())


@pytest.mark.parametrize(("n", "m"), [(25, 64), (65, 64), (100, 64), (400, 64), (200, 16)])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_float32_is_close_to_float64_whatever_the_shape(n: int, m: int, scale: float) -> None:
    """Rank-deficient Gram matrices are where float32 loses the regularizer."""
    generator = torch.Generator().manual_seed(n)
    features = scale * torch.rand(n, m, generator=generator, dtype=torch.float64)
    targets = torch.eye(5, dtype=torch.float64)[torch.arange(n) % 5]
    exact = ridge(features, targets, 1e-3)
    found = ridge(features.float(), targets.float(), 1e-3)
    assert torch.linalg.norm(found - exact) < 0.01 * torch.linalg.norm(exact)


@pytest.mark.parametrize(("n", "m"), [(25, 64), (40, 16)])
@pytest.mark.parametrize("normalize", [False, True])
def test_many_tasks_at_once_are_tasks_one_by_one(n: int, m: int, normalize: bool) -> None:
    problems = [problem(n, m, 5, seed) for seed in range(4)]
    features, targets = map(torch.stack, zip(*problems, strict=True))
    together = ridge(features, targets, 0.1, normalize=normalize)
    losses, accuracies = ridge_query_losses(features, targets.argmax(2), 5, n // 2, 0.1, normalize=normalize)
    is_support = torch.arange(n) < n // 2
    for task, (own, labels) in enumerate(problems):
        torch.testing.assert_close(together[task], ridge(own, labels, 0.1, normalize=normalize))
        loss, accuracy = ridge_query_loss(own, labels.argmax(1), is_support, 0.1, normalize=normalize)
        torch.testing.assert_close(losses[task], loss)
        assert accuracies[task] == accuracy


def test_the_unsolvable_one_among_many_is_named() -> None:
    features, targets = map(torch.stack, zip(*(problem(6, 4, 2, seed) for seed in range(3)), strict=True))
    features[2, 0, 0] = torch.nan
    with pytest.raises(UnsolvableError, match="largest feature nan") as caught:
        ridge(features.float(), targets.float(), 0.1)
    assert caught.value.problem == 2


def test_further_losses_by_hand() -> None:
    (first, own), (second, other) = problem(20, 6, 3, 0), problem(20, 6, 3, 1)
    features, targets = torch.stack([first, second]), torch.stack([own, other])
    labels = targets.argmax(2)
    plain, accuracies = ridge_query_losses(features, labels, 3, 8, 0.1)
    hinged, _ = ridge_query_losses(features, labels, 3, 8, 0.1, hinge=0.5)
    consistent, same = ridge_query_losses(features, labels, 3, 8, 0.1, consistency=2.0)
    both, _ = ridge_query_losses(features, labels, 3, 8, 0.1, hinge=0.5, consistency=2.0)
    torch.testing.assert_close(same, accuracies)
    torch.testing.assert_close(both, hinged + consistent - plain)
    for task in range(2):
        weights = ridge(features[task, :8], targets[task, :8], 0.1)
        outputs = with_intercept(features[task, 8:]) @ weights
        margins = [
            max(0.0, 1 - float(row[label]) + float(row[k]))
            for row, label in zip(outputs, labels[task, 8:].tolist(), strict=True)
            for k in {0, 1, 2} - {label}
        ]
        assert float(hinged[task] - plain[task]) == pytest.approx(0.5 * np.mean(margins), rel=1e-6)
        apart = weights - ridge(features[task, 8:], targets[task, 8:], 0.1)
        assert float(consistent[task] - plain[task]) == pytest.approx(2 * float(apart.square().sum()) / 3, rel=1e-6)


def test_the_hinge_is_that_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    outputs, labels = torch.randn(7, 4, generator=generator), torch.arange(7) % 4
    # which divides by all classes, and not by all others
    expected = F.multi_margin_loss(outputs, labels) * 4 / 3
    torch.testing.assert_close(pairwise_hinge(outputs[None], labels[None]), expected[None])
