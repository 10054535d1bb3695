"""Estimate how task classes scatter, and the directions in which they differ by more than that."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from sklearn.covariance import ledoit_wolf

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.clusters import cluster_means
from mela.labeling.task_classes import ClassMeans, TaskSamples

BLOCK = 16_384
# a smaller variance within a class, relative to the average, is that of equal samples
NOISE_LEAST = 1e-12
FOLDS = 5


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


def discriminant_space(means: Floats, clusters: Ints) -> Space | None:
    r"""Find the directions in which clusters of task classes differ most, in units of what task classes of one do.

    This is Fisher's linear discriminant. W is the covariance of task classes about the means of their clusters, as
    estimated by Ledoit and Wolf (2004), and B that of the k cluster means. In units of W, an eigenvalue of B exceeds
    the variance of the classes by k / n, since n / k task classes do not average out.

    W is not that of new task classes: they are less alike in directions in which those known happen to be alike, and
    shrinking W makes it too large where it is small. By how much new ones scatter is measured by leaving out a fifth of
    the task classes in turn, and W is multiplied by that.

    Parameters
    ----------
    means : float64 (n, m)
    clusters : int64 (n,)
        From 0; -1 is left out, and so are clusters of a single task class.

    Returns
    -------
    Space or None
        With k - 1 dimensions, at most m; None with fewer than two clusters, or where those of a cluster do not differ.
    """
    found = _discriminants(means, clusters)
    if found is None:
        return None
    fold = np.random.default_rng(0).permutation(len(means)) % FOLDS
    squares = [_squares_of_new(means, np.where(fold == own, -1, clusters), clusters) for own in range(FOLDS)]
    wider = float(np.mean(np.concatenate(squares))) if any(map(len, squares)) else 1.0
    return Space(components=found.components / np.sqrt(wider), center=found.center, between=found.between / wider)


def _squares_of_new(means: Floats, known: Ints, clusters: Ints) -> Floats:
    """Return mean squares of the coordinates of task classes about their clusters, which others of these have made."""
    space = _discriminants(means, known)
    if space is None:
        return np.empty(0)
    counts, centers = cluster_means(known, means, int(clusters.max()) + 1)
    new = (known < 0) & (clusters >= 0) & (counts > 1)[clusters]
    deviations = space.transform(means[new]) - space.transform(centers[clusters[new]])
    return (deviations**2).mean(axis=1) / (1 + 1 / counts[clusters[new]])


def _discriminants(means: Floats, clusters: Ints) -> Space | None:
    counts = np.bincount(clusters[clusters >= 0])
    used = (clusters >= 0) & (counts > 1)[clusters]
    own, counts = np.unique(clusters[used], return_inverse=True)[1], counts[counts > 1]
    n, k, m = len(own), len(counts), means.shape[1]
    if k < 2:
        return None
    centers = cluster_means(own, means[used])[1]
    # deviations from a mean of few fall short
    inside = (means[used] - centers[own]) * np.sqrt(counts / (counts - 1))[own, None]
    scale = float(np.abs(inside).max())
    if not scale > 0:
        return None
    covariance = ledoit_wolf(inside / scale, assume_centered=True)[0] * scale**2
    covariance += 1e-6 * np.trace(covariance) / m * np.eye(m)
    center = means[used].mean(axis=0)
    apart = (centers - center) * np.sqrt(counts / n)[:, None]
    values, vectors = eigh(apart.T @ apart, covariance, subset_by_index=(max(m - k + 1, 0), m - 1))
    components = np.ascontiguousarray(vectors[:, ::-1])
    return Space(components=components, center=center, between=np.maximum(values[::-1] - k / n, 1e-3))


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


def unit_length(points: Floats) -> Floats:
    """Return points (n, d) of length 1, whose distances are those of their angles."""
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), np.finfo(np.float64).tiny)
