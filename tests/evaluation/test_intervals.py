"""Confidence intervals of a mean."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from mela.evaluation.intervals import Interval

Floats = npt.NDArray[np.float64]


@pytest.mark.parametrize("n", [2, 5, 600])
def test_interval_is_that_of_students_t(n: int) -> None:
    values = np.random.default_rng(n).normal(50, 10, size=n)
    found = Interval.of(values)
    low, high = stats.t.interval(0.95, n - 1, loc=values.mean(), scale=stats.sem(values))
    assert found.mean - found.ci95 == pytest.approx(low)
    assert found.mean + found.ci95 == pytest.approx(high)


def test_interval_of_equal_values_is_a_point() -> None:
    assert Interval.of(np.full(5, 20.0)) == Interval(20.0, 0.0)


def test_intervals_are_written_as_in_the_tables() -> None:
    assert str(Interval(-4.6, 0.488)) == f"{Interval(-4.6, 0.488)}" == "-4.60 ± 0.49"
    assert f"{Interval(4.6, 0.488):.1f}" == "4.6 ± 0.5"
    assert f"{Interval(4.6, 0.488):+.1f}" == "+4.6 ± 0.5"
    assert f"{Interval(-0.04, 0.488):+z.1f}" == "+0.0 ± 0.5", "none has no minus"


@pytest.mark.parametrize("n", [0, 1])
def test_an_interval_needs_two_values(n: int) -> None:
    with pytest.raises(ValueError, match=f"an interval needs at least 2 values, got {n}"):
        Interval.of(np.ones(n))


def coverage(draw: Callable[[np.random.Generator], Floats], truth: float, repetitions: int = 4000) -> float:
    """Share of intervals that hold the true mean."""
    generator = np.random.default_rng(0)
    found = [Interval.of(draw(generator)) for _ in range(repetitions)]
    return float(np.mean([abs(one.mean - truth) <= one.ci95 for one in found]))


def test_intervals_over_seeds_hold_the_truth_95_times_of_100() -> None:
    """Of normal values, however few; four thousand intervals tell 95% to 0.7 points."""
    for n in (2, 3, 10):
        assert coverage(lambda generator, n=n: generator.normal(70, 5, n), 70) == pytest.approx(0.95, abs=0.011)  # type: ignore[misc]


def test_intervals_over_tasks_hold_the_truth_95_times_of_100() -> None:
    """Of accuracies of 600 tasks of 75 queries, some tasks easier than others; near 100% they are skewed."""

    def accuracies(easy: float, hard: float) -> Callable[[np.random.Generator], Floats]:
        return lambda generator: 100 * generator.binomial(75, generator.beta(easy, hard, 600)) / 75

    assert coverage(accuracies(6, 4), 60) == pytest.approx(0.95, abs=0.011)
    assert coverage(accuracies(49, 1), 98) == pytest.approx(0.95, abs=0.011)


def test_paired_intervals_hold_the_true_gain_95_times_of_100() -> None:
    """Both embeddings find the same tasks hard; the interval of the difference is of the gain, not of the tasks."""

    def gains(generator: np.random.Generator) -> Floats:
        task = generator.normal(60, 10, 600)
        return (task + 2 + generator.normal(0, 3, 600)) - (task + generator.normal(0, 3, 600))

    assert coverage(gains, 2) == pytest.approx(0.95, abs=0.011)
    assert Interval.of(gains(np.random.default_rng(1))).ci95 < 0.4
