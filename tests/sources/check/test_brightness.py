"""How much task classes differ in brightness, and the jitter that varies images as much."""

import numpy as np
import pandas as pd
import pytest

from mela.sources.check.brightness import LEAST, MOST, jitter_for, spread_between


@pytest.mark.parametrize("jitter", [0.55, 0.7, 0.85])
def test_the_jitter_varies_brightness_by_the_spread(jitter: float) -> None:
    factors = np.random.default_rng(0).uniform(1 - jitter, 1 + jitter, size=10**6)
    assert jitter_for(float(np.log(factors).std())) == pytest.approx(jitter, abs=0.011)


def test_the_jitter_has_bounds() -> None:
    assert jitter_for(0.0) == LEAST
    assert jitter_for(100.0) == MOST
    found = [jitter_for(spread) for spread in np.linspace(0, 1, 50)]
    assert found == sorted(found)


@pytest.mark.parametrize("inside", [0.0, 0.5])
@pytest.mark.parametrize("between", [0.0, 0.4])
def test_what_differs_inside_a_group_does_not_count(between: float, inside: float) -> None:
    rng = np.random.default_rng(0)
    groups = pd.Series(np.repeat(np.arange(2000), rng.integers(1, 9, size=2000)))
    logs = rng.normal(-3, between, size=2000)[groups] + rng.normal(0, inside, size=len(groups))
    found = spread_between(pd.Series(np.exp(logs)), groups)
    assert found == pytest.approx(between, abs=0.15 if not between else 0.03)


def test_a_few_black_groups_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    groups = pd.Series(np.arange(100).repeat(4))
    brightness = pd.Series(np.exp(rng.normal(-1, 0.2, size=100))[groups])
    brightness[groups < 3] = 0.5 / 255.5
    assert spread_between(brightness, groups) == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize("groups", [[], [0], [0, 1, 2], [0, 0, 1]])
def test_too_few_groups_have_no_spread(groups: list[int]) -> None:
    brightness = pd.Series(np.linspace(0.1, 1, len(groups)), dtype=float)
    assert spread_between(brightness, pd.Series(groups, dtype=int)) == 0
