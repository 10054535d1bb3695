"""Move centroids in passes over the tasks (`mela.labeling.pruning.run_pass`), scored by matrix products.

The definition is a plain loop: tasks in order, each class to its nearest centroid, matched centroids moved at once.
Here the scores of a block of tasks come from one matrix product, and after each match only the columns of the centroids
that moved are computed again for the rest of the block. Rounding cannot show: the product only rules centroids out;
whatever lies within its error bound of the best is decided by squared distances in float64, the lowest index at a tie.
Results are therefore the same for every block size, BLAS and number of threads.

The code is written to the array API standard: the same lines run on numpy arrays and on torch tensors of any device.
"""

from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from mela.data.array_types import Floats, Ints

Array = Any

BLOCK_ROWS = 256


class Centroids:
    r"""Score points by centroids that move.

    The score :math:`\langle x, g \rangle - |g|^2 / 2` is largest where :math:`|x - g|` is smallest.

    Parameters
    ----------
    points : float array (n_clusters, m)
        Copied; numpy or torch, float32 or float64.
    radius : float
        No point that will be scored, and none that a centroid moves towards, has a larger norm.
    """

    def __init__(self, points: Array, radius: float) -> None:
        self.xp = array_namespace(points)
        # the last column carries -|g|^2 / 2, so that a score is one product with (x, 1)
        self._extended = self.xp.concat([points, -_half_norms(points)[:, None]], axis=1)
        self._radius = 1.01 * max(radius, float(self.xp.max(norms(points))))
        steps = (points.shape[1] + 2) * float(self.xp.finfo(points.dtype).eps)
        self._relative = 4 * steps / (1 - steps)

    def __len__(self) -> int:
        return int(self._extended.shape[0])

    @property
    def points(self) -> Array:
        """The current centroids (n_clusters, m)."""
        return self._extended[:, :-1]

    def scores(self, extended: Array) -> Array:
        """Return the scores (b, n_clusters) of points that `extend` has prepared."""
        return extended @ self._extended.T

    def margins(self, point_norms: Array) -> Array:
        r"""Return how far below the best score the nearest centroid may lie, for points of these norms (b,).

        A sum of m products in any order errs by at most :math:`\gamma_m = m u / (1 - m u)` times the sum of their
        magnitudes (Higham, *Accuracy and Stability of Numerical Algorithms*, 2002, Sect. 3.1). Here eps = 2 u, which
        leaves room for the rounding of the distances that decide.
        """
        return self._relative * self._radius * (point_norms + self._radius)

    def nearest(self, points: Array, scores: Array, margins: Array) -> list[int]:
        """Return the nearest centroid of each point (k, m), given scores (k, n_clusters) and margins (k,)."""
        xp = self.xp
        best = xp.argmax(scores, axis=1)
        highest = scores[xp.arange(len(best), device=device(scores)), best]
        near = scores >= (highest - margins)[:, None]
        found: list[int] = best.tolist()
        if int(xp.count_nonzero(near)) > len(found):
            for row in xp.nonzero(xp.count_nonzero(near, axis=1) > 1)[0].tolist():
                found[row] = self._decide(points[row, :], xp.nonzero(near[row, :])[0])
        return found

    def _decide(self, point: Array, candidates: Array) -> int:
        xp = self.xp
        rivals = xp.astype(self._extended[candidates, :][:, :-1], xp.float64)
        distances = xp.sum((xp.astype(point, xp.float64)[None, :] - rivals) ** 2, axis=1)
        return int(candidates[int(xp.argmin(distances))])

    def move(self, where: Array, points: Array, old_weights: Floats, new_weights: Floats) -> Array:
        """Average centroids (indices, (k,)) of given weights (k,) with points (k, m) of weights (k,).

        Returns the rows that changed, with their last column.
        """
        xp = self.xp
        weights = xp.asarray(np.array((old_weights, new_weights)), dtype=points.dtype, device=device(points))
        old, new = weights[0, :, None], weights[1, :, None]
        changed = self._extended[where, :]
        moved = changed[:, :-1]
        moved *= old
        moved += new * points
        moved /= old + new
        changed[:, -1] = xp.vecdot(moved, moved, axis=1) / -2
        self._extended[where, :] = changed
        return changed


def nearest(means: Array, centroids: Array, *, block_rows: int = BLOCK_ROWS) -> Ints:
    """Return which of the centroids (n_clusters, m) is nearest to each mean (n, m), the first at a tie: int64 (n,)."""
    lengths = norms(means)
    fixed = Centroids(centroids, float(array_namespace(means).max(lengths)))
    margins = fixed.margins(lengths)
    found = []
    for start in range(0, int(means.shape[0]), block_rows):
        block = means[start : start + block_rows, :]
        found += fixed.nearest(block, fixed.scores(extend(block)), margins[start : start + block_rows])
    return np.array(found, dtype=np.int64)


def norms(points: Array) -> Array:
    """Return the Euclidean norms (n,) of points (n, m)."""
    return (2 * _half_norms(points)) ** 0.5


def _half_norms(points: Array) -> Array:
    xp = array_namespace(points)
    return xp.vecdot(points, points, axis=1) / 2


def extend(points: Array) -> Array:
    """Append a column of ones to points, as centroids are scored with."""
    xp = array_namespace(points)
    ones = xp.ones((points.shape[0], 1), dtype=points.dtype, device=device(points))
    return xp.concat([points, ones], axis=1)
