"""Partition probabilities: against enumeration and against sizes whose evenness is known."""

import numpy as np
import pytest
from scipy.special import gammaln
from sympy.utilities.iterables import multiset_partitions

from mela.labeling.size_prior import EVENNESS, evenness, log_number, log_sizes, one_fewer


@pytest.mark.parametrize("gamma", [0.3, 1.0, 7.0])
def test_given_the_number_of_classes_partitions_are_those_of_a_dirichlet_multinomial(gamma: float) -> None:
    """K labelled classes: a partition into G blocks comes about in K! / (K - G)! ways; ours has K = G."""
    n = 6
    for number in range(1, n + 1):
        counts = [np.array([len(block) for block in blocks]) for blocks in multiset_partitions(n, number)]
        ours = [float(log_number(number, n, gamma) + log_sizes(sizes, gamma).sum()) for sizes in counts]
        common = gammaln(number + 1) + gammaln(number * gamma) - gammaln(number * gamma + n)
        direct = [common + sum(gammaln(size + gamma) - gammaln(gamma) for size in sizes) for sizes in counts]
        np.testing.assert_allclose(ours, direct, rtol=1e-12)
        assert np.exp(ours).sum() <= 1 + 1e-12, "all ways to fill every one of K classes, at most certain"
    assert np.exp(float(log_number(1, n, gamma) + log_sizes(np.array([n]), gamma).sum())) == pytest.approx(1)


def test_one_fewer_at_a_time() -> None:
    steps = one_fewer(5, 40, 2.0)
    assert steps.shape == (4,)
    assert steps.sum() == pytest.approx(float(log_number(1, 40, 2.0) - log_number(5, 40, 2.0)))
    assert steps[0] == pytest.approx(float(log_number(4, 40, 2.0) - log_number(5, 40, 2.0)))
    assert one_fewer(1, 40, 2.0).shape == (0,)


@pytest.mark.parametrize("gamma", [1.5, 3.0, 20.0])
def test_evenness_is_found_again(gamma: float) -> None:
    rng = np.random.default_rng(0)
    counts = rng.multinomial(60_000, rng.dirichlet(np.full(2000, gamma)))
    assert evenness(counts[counts > 0]) == pytest.approx(gamma, rel=0.25)


def test_equal_sizes_are_as_even_as_can_be() -> None:
    assert evenness(np.full(50, 4)) == EVENNESS[-1]
    assert evenness(np.array([1] * 50 + [1000])) < 0.5
