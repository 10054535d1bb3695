r"""Take away by how much all classes of a task are shifted alike, as by their person's camera or hand.

The mean of a task class is that of its class, plus a shift of its task, plus whatever differs between task classes of
one class:

.. math:: x_{tc} = \mu + g_t + b_{tc}, \qquad g_t \sim N(0, G), \quad b_{tc} \sim N(0, W) .

W is the covariance of classes about the mean of their task. Means of tasks of K classes have the covariance
:math:`G + W / K`, so that in units of it they have unit covariance where there is no shift. The best linear predictor
of a shift is :math:`\hat g_t = G (G + W / K)^{-1} (\bar x_t - \mu)`. What is left after it is taken away,
:math:`x_{tc} - \hat g_t`, has no covariance between the classes of a task, neither a positive one, as with the shift,
nor a negative one, as if the whole mean of the task were taken away. So pairs inside tasks are again as good as any
others to judge clusters by.

G is unknown, and tasks are few. In units of W / K, the covariance of the means of tasks has an eigenvalue l larger than
chance makes for each direction of shifts. What chance makes is measured, by dealing the task classes to tasks at random
(parallel analysis; Horn, "A rationale and test for the number of factors in factor analysis", 1965). By the edge e of
these eigenvalues, :math:`\gamma = (\sqrt e - 1)^2`, and the variance of the shift along the direction is
:math:`a = (\lambda - 1) c^2` with :math:`l = \lambda + \gamma \lambda / (\lambda - 1)` and
:math:`c^2 = (1 - \gamma / (\lambda - 1)^2) / (1 + \gamma / (\lambda - 1))`, the squared cosine between this and the
true direction (Donoho, Gavish and Johnstone, "Optimal shrinkage of eigenvalues in the spiked covariance model", 2018).
W is that of Ledoit and Wolf (2004).
"""

from dataclasses import dataclass

import numpy as np
from sklearn.covariance import ledoit_wolf

from mela.data.array_types import Floats, Ints

DEALS = 4


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
        ways = np.diff(starts)
        tasks = np.add.reduceat(means - self.center, starts[:-1], axis=0) / ways[:, None]
        larger = ways[:, None] * self.variances
        shifts = (tasks @ self.axes * (larger / (1 + larger))) @ self.back
        return means - np.repeat(shifts, ways, axis=0)


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
    ways, m = np.diff(starts), means.shape[1]
    center = means.mean(axis=0)
    none = Shifts(center=center, axes=np.empty((m, 0)), variances=np.empty(0), back=np.empty((0, m)))
    if len(ways) < 2 or len(means) == len(ways):
        return none
    seen = _Tasks.of(means, ways)
    if seen is None:
        return none
    generator = np.random.default_rng(0)
    dealt = [_Tasks.of(generator.permutation(means), ways) for _ in range(DEALS)]
    edge = max(float(np.mean([found.values[-1] for found in dealt if found is not None])), 1.0)
    large = seen.values > edge
    gamma = (np.sqrt(edge) - 1) ** 2
    sums = seen.values[large] + 1 - gamma
    # their values less 1, which are larger than the root of gamma
    excess = (sums + np.sqrt(np.maximum(sums**2 - 4 * seen.values[large], 0))) / 2 - 1
    variances = excess * np.maximum(1 - gamma / excess**2, 0) / (1 + gamma / excess)
    directions = seen.directions[:, large]
    return Shifts(
        center=center,
        axes=seen.scaling @ directions,
        variances=variances / ways.mean(),
        back=directions.T @ seen.root,
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
        """Return those of task classes (n, m) in their order; None if classes of a task do not differ."""
        centered = means - means.mean(axis=0)
        tasks = np.add.reduceat(centered, np.cumsum(ways) - ways, axis=0) / ways[:, None]
        inside = centered - np.repeat(tasks, ways, axis=0)
        covariance = ledoit_wolf(inside, assume_centered=True)[0] * len(means) / (len(means) - len(ways))
        if not np.trace(covariance) > 0:
            return None
        scales, axes = np.linalg.eigh(covariance)
        scales = np.sqrt(np.maximum(scales, 1e-12 * scales[-1]))
        scaling = axes / scales
        points = (tasks * np.sqrt(ways)[:, None]) @ scaling
        values, directions = np.linalg.eigh(points.T @ points / len(ways))
        return cls(root=(axes * scales).T, scaling=scaling, values=values, directions=directions)
