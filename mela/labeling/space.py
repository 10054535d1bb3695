"""Estimate how task classes scatter, and the directions in which they differ by more than that."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from mela.data.array_types import Floats
from mela.errors import MelaError
from mela.labeling.task_classes import ClassMeans, TaskSamples

BLOCK = 16_384
# a smaller variance within a class, relative to the average, is that of equal samples
NOISE_LEAST = 1e-12


@dataclass(frozen=True, kw_only=True)
class Space:
    """Map to coordinates with unit noise for a task class of average size, in which classes vary independently.

    Attributes
    ----------
    components : float64 (m, d)
        Coordinates are ``(x - center) @ components``.
    center : float64 (m,)
    between : float64 (d,)
        Variance of the class means, in units of the noise.
    """

    components: Floats
    center: Floats
    between: Floats

    def transform(self, points: Floats) -> Floats:
        """Return the coordinates (n, d) of points (n, m)."""
        found = np.empty((len(points), self.components.shape[1]))
        for rows, centred in _centred(points, self.center):
            found[rows] = centred @ self.components
        return found


def _centred(points: Floats, center: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield differences from the center, some rows at a time, since all would take as much memory as the points."""
    for start in range(0, len(points), BLOCK):
        rows = slice(start, start + BLOCK)
        yield rows, points[rows] - center


def sample_space(samples: TaskSamples, classes: ClassMeans) -> Space:
    """Return the `space_of` samples with these class means; some task class has two samples or more."""
    return space_of(classes.means, *noise_of(samples, classes))


def noise_of(samples: TaskSamples, classes: ClassMeans) -> tuple[Floats, int]:
    """Return the covariance (m, m) that noise gives to the mean of a task class of average size, and its freedom.

    Raises
    ------
    MelaError
        No sample differs from the mean of its task class.
    """
    m = classes.means.shape[1]
    scatter = np.zeros((m, m))
    for features, rows in samples.blocks():
        residuals = features - classes.means[rows]
        scatter += residuals.T @ residuals
    if not np.trace(scatter) > 0:
        raise MelaError(
            "features: all samples of each task class have the same features, so classes cannot be compared; train the "
            "embedding longer, or use another one"
        )
    freedom = int(classes.sizes.sum()) - len(classes.sizes)
    return scatter / freedom / classes.sizes.mean(), freedom


def space_of(means: Floats, noise: Floats, freedom: int) -> Space:
    r"""Find the directions in which classes differ by more than noise would show.

    These are the generalised eigenvectors of the covariance of the means with respect to the noise. Without any
    difference between classes the eigenvalues would still spread up to the edge of Wachter's law,
    :math:`((1 + h) / (1 - y_2))^2` with :math:`h^2 = y_1 + y_2 - y_1 y_2`, :math:`y_1 = m / n` and :math:`y_2 = m / f`;
    only what lies above is kept. Such an eigenvalue l exceeds the true one, :math:`\lambda`, by a known bias:
    :math:`l = \lambda + y_1 \lambda / (\lambda - 1)` (Baik and Silverstein, 2006).

    Parameters
    ----------
    means : float64 (n, m)
    noise : float64 (m, m)
        Covariance of a task class's mean about its class.
    freedom : int
        f, the degrees of freedom by which the noise is known.
    """
    n, m = means.shape
    noise = noise + 1e-6 * np.trace(noise) / m * np.eye(m)
    center = means.mean(axis=0)
    covariance = sum((own.T @ own for _, own in _centred(means, center)), np.zeros((m, m))) * (1 / (n - 1))
    values, vectors = eigh(covariance, noise)
    values, vectors = values[::-1], vectors[:, ::-1]
    y1, y2 = m / n, min(m / freedom, 0.99)
    edge = ((1 + np.sqrt(y1 + y2 - y1 * y2)) / (1 - y2)) ** 2
    kept = max(1, int((values > edge).sum()))
    sums = values[:kept] + 1 - y1
    spikes = (sums + np.sqrt(np.maximum(sums**2 - 4 * values[:kept], 0))) / 2
    # NumPy before 2.3 multiplies by reversed columns in another order than by the same array read from a file
    components = np.ascontiguousarray(vectors[:, :kept])
    return Space(components=components, center=center, between=np.maximum(spikes - 1, 1e-3))


def noise_scales(squares: Floats, freedom: Floats, dimensions: int) -> Floats:
    """Return the noise variance (n,) of each task class relative to the average, shrunk by what chance would spread it.

    Parameters
    ----------
    squares : float64 (n,)
        Sum of the squared deviations of the samples of a task class, in a `Space`.
    freedom : float64 (n,)
        Samples less one.
    dimensions : int
        Dimensions of the space.

    Raises
    ------
    MelaError
        Samples of some task class are equal and those of others so different that nothing is shrunk.
    """
    known = freedom > 0
    degrees = np.maximum(freedom, 1) * dimensions
    scales = np.where(known, squares / degrees, 1.0)
    spread = float(scales[known].var())
    share = max(0.0, 1 - float((2 / degrees[known]).mean()) / spread) if spread > 0 else 0.0
    noise = 1 + (scales - 1) * share
    equal = int((noise < NOISE_LEAST).sum())
    if equal:
        raise MelaError(
            f"features: {equal} of {len(noise)} task classes have equal samples, while others differ enormously; look "
            "for outliers among the features"
        )
    return noise
