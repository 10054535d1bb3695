r"""Measure how far apart task classes are by the neighbours that they share.

Where people differ, a task class may lie closer to another class of similar appearance than to most of its own. Its
nearest neighbours are still of its class more often than not. So two task classes are close here if they have the same
neighbours. Zhong et al. ("Re-ranking person re-identification with k-reciprocal encoding", 2017) compare photographs of
different cameras this way. The steps are those of the paper, whose neighbourhoods are of 20 and 6 instead of 10 and 4:

1. R(i) are the 10 nearest of i that have i among their own 10 nearest, and i itself.
2. The same set of half as many neighbours of each member j joins R(i), if more than two thirds of it are in R(i).
3. i is described by the weights :math:`v_{ij} = \exp(-d_{ij})` of the members of R(i), which sum to 1. Here d is the
   squared distance, divided by the largest one from i. This is averaged over i and its 3 nearest neighbours.
   `mela.labeling.pair_scores` may take the place of squared distances. Then d is from 0 for the nearest to 1.
4. The distance of i and j is that of Jaccard, :math:`1 - \sum_k \min(v_{ik}, v_{jk}) / \sum_k \max(v_{ik}, v_{jk})`.
"""

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, vstack
from scipy.spatial.distance import cdist

from mela.data.array_types import Floats, Ints
from mela.labeling.nearest_points import nearest_points
from mela.labeling.pair_scores import Distances, SquaredDistances, blocks

NEIGHBOURS, AVERAGED = 10, 4
OVERLAP = 2 / 3
# points among which the farthest one is looked for, where there are very many
SAMPLE = 300
# of entries of a column, at once
PAIRS = 4_000_000


def shared_neighbours(distances: Distances, count: int = NEIGHBOURS) -> Floats:
    """Return the distances between points, in [0, 1], in the condensed form of ``scipy.spatial.distance.pdist``.

    Parameters
    ----------
    distances : Distances
        Of two points or more.
    count : int, at least 1
        Nearest neighbours to look at.
    """
    return _jaccard(_weights(distances, *_nearest(distances, min(count, distances.n - 1))))


def closeness_of_many(points: Floats, count: int = NEIGHBOURS) -> csr_array:
    """Return 1 less the distances between points (n, d) above the diagonal, without those of no shared neighbours.

    An index finds the neighbours (`mela.labeling.nearest_points`), and the largest distance from a point is taken
    among 300 others, drawn at random.
    """
    distances = SquaredDistances(points)
    itself = np.arange(distances.n)
    nearest = np.column_stack([itself, nearest_points(points, min(count, distances.n - 1))])
    some = points[np.random.default_rng(0).permutation(distances.n)[:SAMPLE]]
    farthest = np.concatenate([cdist(points[rows], some, "sqeuclidean").max(axis=1) for rows in blocks(distances.n)])
    farthest = np.maximum(farthest, distances.between(itself, nearest[:, -1]))
    return _shared(_weights(distances, nearest, np.zeros(distances.n), farthest))


def _weights(distances: Distances, nearest: Ints, lowest: Floats, farthest: Floats) -> csr_array:
    """Return how each point (n, n) is described by others, as in step 3, for what `_nearest` returns."""
    near = _mutual(nearest)
    closer = _mutual(nearest[:, : (nearest.shape[1] - 1) // 2 + 1])
    overlap = (near @ closer.T).multiply(near).tocoo()
    alike = overlap.data > OVERLAP * closer.sum(axis=1)[overlap.col]
    joined = csr_array((np.ones(alike.sum()), (overlap.row[alike], overlap.col[alike])), shape=near.shape)
    rows, columns = (near + joined @ closer).nonzero()
    spans = (farthest - lowest)[rows]
    # rounding may put a distance outside of those that were found by blocks, and leaves nothing to divide by
    beyond = np.clip(np.where(rows == columns, 0.0, distances.between(rows, columns) - lowest[rows]), 0, spans)
    far = np.divide(beyond, spans, out=np.zeros_like(beyond), where=spans > 0)
    weights = csr_array((np.exp(-far), (rows, columns)), shape=near.shape)
    weights = csr_array(weights.multiply(1 / weights.sum(axis=1)[:, None]))
    averaged = nearest[:, :AVERAGED]
    return csr_array(_directed(averaged, 1 / averaged.shape[1]) @ weights)


def _nearest(distances: Distances, count: int) -> tuple[Ints, Floats, Floats]:
    """Return each point and its nearest ones (n, count + 1), and the lowest and largest distance of each (n,)."""
    n = distances.n
    found, lowest, farthest = np.empty((n, count + 1), dtype=np.int64), np.empty(n), np.empty(n)
    for rows in blocks(n):
        far, own = distances.of(rows), (np.arange(len(rows)), rows)
        far[own] = np.inf
        lowest[rows] = distances.lowest(far)
        far[own] = -np.inf
        farthest[rows] = far.max(axis=1)
        some = np.argpartition(far, count, axis=1)[:, : count + 1]
        order = np.argsort(np.take_along_axis(far, some, axis=1), axis=1, kind="stable")
        found[rows] = np.take_along_axis(some, order, axis=1)
    return found, lowest, farthest


def _mutual(nearest: Ints) -> csr_array:
    """Return which points (n, n) have each other among their nearest."""
    directed = _directed(nearest, 1.0)
    return csr_array(directed.multiply(directed.T))


def _directed(nearest: Ints, value: float) -> csr_array:
    """Return a value (n, n) for each point and each of its nearest ones (n, count)."""
    n, count = nearest.shape
    places = (np.repeat(np.arange(n), count), nearest.ravel())
    return csr_array((np.full(n * count, value), places), shape=(n, n))


def _jaccard(weights: csr_array) -> Floats:
    """Return the distances of Jaccard between rows (n, n) that sum to 1, condensed."""
    n = weights.shape[0]
    shared = np.zeros(n * (n - 1) // 2)
    # rows rise within a column
    columns = weights.tocsc()
    pairs: dict[int, tuple[Ints, ...]] = {}
    for start, end in zip(columns.indptr[:-1], columns.indptr[1:], strict=True):
        rows, values = columns.indices[start:end].astype(np.int64), columns.data[start:end]
        if len(rows) not in pairs:
            pairs[len(rows)] = np.triu_indices(len(rows), 1)
        first, second = pairs[len(rows)]
        shared[_place(rows[first], rows[second], n)] += np.minimum(values[first], values[second])
    # rows sum to 1, so that minima and maxima sum to 2
    return np.maximum(1 - shared / (2 - shared), 0)


def _shared(weights: csr_array) -> csr_array:
    """Return 1 less the distances of Jaccard between rows (n, n) that sum to 1, above the diagonal."""
    n = weights.shape[0]
    columns = weights.tocsc()
    longest = np.diff(columns.indptr)
    # pairs of an entry and another one of its column, some rows at a time
    pairs = np.concatenate([[0], np.cumsum(longest[weights.indices])])[weights.indptr]
    found: list[csr_array] = []
    while (start := sum(part.shape[0] for part in found)) < n:
        end = max(int(np.searchsorted(pairs, pairs[start] + PAIRS, side="right")) - 1, start + 1)
        own = slice(weights.indptr[start], weights.indptr[end])
        of, times = weights.indices[own], longest[weights.indices[own]]
        rows = np.repeat(np.repeat(np.arange(end - start), np.diff(weights.indptr[start : end + 1])), times)
        places = np.arange(len(rows)) + np.repeat(columns.indptr[of] - (np.cumsum(times) - times), times)
        others, both = columns.indices[places], np.minimum(np.repeat(weights.data[own], times), columns.data[places])
        later = others > rows + start
        found.append(csr_array((both[later], (rows[later], others[later])), shape=(end - start, n)))
    shared = csr_array(vstack(found, format="csr"))
    # rows sum to 1, so that minima and maxima sum to 2
    shared.data = np.minimum(shared.data / (2 - shared.data), 1)
    return shared


def _place(low: npt.NDArray[np.int64], high: npt.NDArray[np.int64], n: int) -> Ints:
    """Return the places of pairs in a condensed array."""
    return low * (2 * n - low - 1) // 2 + high - low - 1
