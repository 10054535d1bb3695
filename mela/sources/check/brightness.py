"""Measure how much task classes differ in brightness, as photographs of different people do."""

import math

import numpy as np
import pandas as pd
from scipy.optimize import brentq

LEAST, MOST = 0.5, 0.9


def spread_between(brightness: "pd.Series[float]", groups: "pd.Series[int]") -> float:
    """Return by how much groups of images differ in brightness, as the standard deviation of mean logarithms.

    It is half of the distance between the 16th and the 84th percentile, so that a few black images do not matter. Means
    also differ because images of one group do, which is subtracted. Groups of one image do not count.

    Parameters
    ----------
    brightness : Series of float
        In (0, 1], one for each image.
    groups : Series of int
        The group of each.
    """
    of_group = brightness.map(math.log).groupby(groups).agg(["mean", "var", "size"])
    of_group = of_group[of_group["size"] > 1]
    if len(of_group) < 2:
        return 0.0
    low, high = of_group["mean"].quantile([0.16, 0.84])
    by_chance = (of_group["var"] / of_group["size"]).median()
    return float(np.sqrt(max((high - low) ** 2 / 4 - by_chance, 0.0)))


def jitter_for(spread: float) -> float:
    """Return the `augment.jitter` by which images vary as much in brightness as task classes do, from 0.5 to 0.9.

    The jitter draws a factor from a uniform distribution between 1 - j and 1 + j, whose logarithm has a standard
    deviation.

    Parameters
    ----------
    spread : float
        That standard deviation.
    """
    if spread <= _deviation(LEAST):
        return LEAST
    if spread >= _deviation(MOST):
        return MOST
    return round(float(brentq(lambda jitter: _deviation(jitter) - spread, LEAST, MOST)), 2)


def _deviation(jitter: float) -> float:
    """Return the standard deviation of the logarithm of a uniform variable between 1 - jitter and 1 + jitter."""
    ends = np.array([1 - jitter, 1 + jitter])
    logs = np.log(ends)
    mean = np.diff(ends * (logs - 1))[0] / (2 * jitter)
    square = np.diff(ends * (logs**2 - 2 * logs + 2))[0] / (2 * jitter)
    return float(np.sqrt(square - mean**2))
