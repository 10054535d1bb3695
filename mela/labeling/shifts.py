r"""Take away by how much all classes of a task are shifted alike, as by their person's camera or hand.

The mean of a task class is that of its class, plus a shift of its task, plus whatever differs between task classes of
one class:

.. math:: x_{tc} = \mu + g_t + b_{tc}, \qquad g_t \sim N(0, \Theta), \quad b_{tc} \sim N(0, W) .

W is the covariance of classes about the mean of their task. Means of tasks of K classes have the covariance
:math:`\Theta + W / K`. The best linear predictor of a shift is therefore
:math:`\hat g_t = \Theta (\Theta + W / K)^{-1} (\bar x_t - \mu)`.

Classes of a task have the covariance Theta before the prediction is taken away, and
:math:`-\Theta (\Theta + W / K)^{-1} W / K` after it. Along directions of shifts they are then slightly further apart
than others, so that pairs inside tasks judge clusters a little too well. Without the whole mean of each task this
would be so, and by more, in all directions. With the factor :math:`I - (I + K \Theta W^{-1})^{-1/2}` no covariance
would be left, but more of the shift.

Theta is unknown, and tasks are few. In units of W / K, the covariance of the means of tasks has eigenvalues of 1 where
nothing is shifted, but for chance. What chance makes is measured by dealing the task classes to tasks at random 19
times. Shifts are seen in the directions whose eigenvalue l is larger than that of any deal (parallel analysis; Horn, "A
rationale and test for the number of factors in factor analysis", 1965). Large eigenvalues exaggerate. With e for the
mean largest one of the deals and :math:`\gamma = (\sqrt e - 1)^2`, the variance of the shift in units of W / K is
:math:`(\lambda - 1) c^2`, where :math:`l = \lambda + \gamma \lambda / (\lambda - 1)`. The squared cosine between the
direction found and the true one is :math:`c^2 = (1 - \gamma / (\lambda - 1)^2) / (1 + \gamma / (\lambda - 1))`
(Donoho, Gavish and Johnstone, "Optimal shrinkage of eigenvalues in the spiked covariance model", 2018). W is that of
Ledoit and Wolf (2004).
"""

from dataclasses import dataclass

import numpy as np
from sklearn.covariance import ledoit_wolf

from mela.data.array_types import Floats, Ints
from mela.labeling.clusters import cluster_means, of_sources
from mela.labeling.task_classes import ClassMeans

DEALS = 19


@dataclass(frozen=True, kw_only=True)
class Shifts:
    """Predict the shift of a task from the mean of its classes.

    Attributes
    ----------
    center : float64 (m,)
        Mean of all task classes.
    axes : float64 (m, r)
        Coordinates ``(x - center) @ axes``, along which classes of a task vary by 1 about their mean.
    variances : float64 (r,)
        Of the shifts, in these coordinates.
    back : float64 (r, m)
        What moves features by 1 along each coordinate.
    """

    center: Floats
    axes: Floats
    variances: Floats
    back: Floats

    def subtract(self, means: Floats, starts: Ints) -> Floats:
        """Return the means (n, m) of task classes less the shifts of their tasks, whose bounds are (n_tasks + 1,)."""
        if not len(self.variances):
            return means
        return means - np.repeat(self.predict(means, starts), np.diff(starts), axis=0)

    def predict(self, means: Floats, starts: Ints) -> Floats:
        """Return the shifts (n_tasks, m) of tasks with these means (n, m) of task classes, whose bounds are given."""
        ways = np.diff(starts)
        tasks = np.add.reduceat(means - self.center, starts[:-1], axis=0) / ways[:, None]
        larger = ways[:, None] * self.variances
        return (tasks @ self.axes * (larger / (1 + larger))) @ self.back


def no_shifts(means: Floats) -> Shifts:
    """Return shifts without coordinates (r = 0), which change none of the means (n, m)."""
    m = means.shape[1]
    return Shifts(center=means.mean(axis=0), axes=np.empty((m, 0)), variances=np.empty(0), back=np.empty((0, m)))


def without_shifts(classes: ClassMeans, fragments: Ints) -> tuple[Shifts, Floats]:
    """Return the shifts of tasks, or of their sources where these are known, and the means (n, m) less these.

    Parameters
    ----------
    classes : ClassMeans
    fragments : int64 (n,)
        Task classes of a source that share a number are one class of it, and so is each one of -1. If somebody has the
        same five classes in each of many tasks, their mean is that of five classes, and no more certain than that.
    """
    source = classes.of_sources
    if source is None:
        shifts = find_shifts(classes.means, classes.starts)
        return shifts, shifts.subtract(classes.means, classes.starts)
    of, versions = of_sources(fragments, source)
    means = cluster_means(versions, classes.means)[1]
    starts = np.searchsorted(of, np.arange(int(source.max()) + 2))
    shifts = find_shifts(means, starts)
    return shifts, classes.means - shifts.predict(means, starts)[source]


def find_shifts(means: Floats, starts: Ints) -> Shifts:
    """Estimate the covariance of shifts.

    Parameters
    ----------
    means : float64 (n, m)
        Of task classes.
    starts : int64 (n_tasks + 1,)
        Bounds of the tasks.

    Returns
    -------
    Shifts
        Without coordinates (r = 0) where no shifts are to be seen, as with a single task or tasks of one class each.
    """
    ways, none = np.diff(starts), no_shifts(means)
    center = none.center
    # powers of features must not leave the range of floats
    unit = float(np.abs(means - center).max())
    if len(ways) < 2 or len(means) == len(ways) or not unit > 0:
        return none
    scaled = (means - center) / unit
    seen = _Tasks.of(scaled, ways)
    if seen is None:
        return none
    generator = np.random.default_rng(0)
    dealt = [_Tasks.of(generator.permutation(scaled), ways) for _ in range(DEALS)]
    chance = [np.inf if found is None else found.values[-1] for found in dealt]
    large = seen.values > max(*chance, 1.0)
    gamma = (np.sqrt(max(float(np.mean(chance)), 1.0)) - 1) ** 2
    sums = seen.values[large] + 1 - gamma
    # their values less 1, which are larger than the root of gamma
    excess = (sums + np.sqrt(sums**2 - 4 * seen.values[large])) / 2 - 1
    variances = excess * (1 - gamma / excess**2) / (1 + gamma / excess)
    directions = seen.directions[:, large]
    return Shifts(
        center=center,
        axes=seen.scaling @ directions / unit,
        variances=variances / ways.mean(),
        back=directions.T @ seen.root * unit,
    )


@dataclass(frozen=True, kw_only=True)
class _Tasks:
    """Hold the roots (m, m) of W and of its inverse, and eigenvalues of the means of tasks in units of W / K."""

    root: Floats
    scaling: Floats
    values: Floats
    directions: Floats

    @classmethod
    def of(cls, means: Floats, ways: Ints) -> "_Tasks | None":
        """Return those of task classes (n, m) about their mean, of values up to 1; None where no task varies."""
        tasks = np.add.reduceat(means, np.cumsum(ways) - ways, axis=0) / ways[:, None]
        inside = means - np.repeat(tasks, ways, axis=0)
        # what is left of equal means is their rounding
        if np.abs(inside).max() <= 1e-9:
            return None
        covariance = ledoit_wolf(inside, assume_centered=True)[0] * len(means) / (len(means) - len(ways))
        scales, axes = np.linalg.eigh(covariance)
        scales = np.sqrt(np.maximum(scales, 1e-12 * scales[-1]))
        scaling = axes / scales
        points = (tasks * np.sqrt(ways)[:, None]) @ scaling
        values, directions = np.linalg.eigh(points.T @ points / len(ways))
        return cls(root=(axes * scales).T, scaling=scaling, values=values, directions=directions)
