"""Confidence intervals of a mean."""

import numpy as np
import pytest
from scipy import stats

from mela.intervals import Interval


@pytest.mark.parametrize("n", [2, 5, 600])
def test_interval_is_that_of_students_t(n: int) -> None:
    values = np.random.default_rng(n).normal(50, 10, size=n)
    found = Interval.of(values)
    low, high = stats.t.interval(0.95, n - 1, loc=values.mean(), scale=stats.sem(values))
    assert found.mean - found.ci95 == pytest.approx(low)
    assert found.mean + found.ci95 == pytest.approx(high)


def test_interval_of_equal_values_is_a_point() -> None:
    assert Interval.of(np.full(5, 20.0)) == Interval(20.0, 0.0)


@pytest.mark.parametrize("n", [0, 1])
def test_an_interval_needs_two_values(n: int) -> None:
    with pytest.raises(ValueError, match=f"an interval needs at least 2 values, got {n}"):
        Interval.of(np.ones(n))
