"""Find the nearest of very many points by an index (Faiss), since a table of all distances would not fit in memory."""

from typing import Any

import numpy as np

from mela.data.array_types import Features, Floats, Ints

# points that are all compared with each other; of more, only neighbours are
ALL_PAIRS = 5000
# up to here neighbours are found by every distance
EXACT = 20_000
# cells of the index for each root of the number of points, and how many are searched
CELLS, SEARCHED = 4, 16
ROUNDS, OF_EACH_CELL = 6, 40


def nearest_points(points: Floats, count: int, among: Floats | None = None) -> Ints:
    """Return the nearest other points (n, count) of each of n > count points (n, d), nearest first.

    Distances are Euclidean and in single precision. More than 20,000 points are divided into cells by K-means, and only
    the nearest cells are searched (the inverted files of Jégou, Douze and Schmid, "Product quantization for nearest
    neighbor search", 2011). A few neighbours are then missed.

    Parameters
    ----------
    points : float64 (n, d)
    count : int
    among : float64 (k, d), optional
        Return the nearest of these k >= count points instead.
    """
    base = points if among is None else among
    center = base.mean(axis=0)
    # squares of features must not leave the range of single precision
    unit = max(float(np.abs(points - center).max()), np.finfo(np.float64).tiny)
    index = _index(((base - center) / unit).astype(np.float32))
    asked = ((points - center) / unit).astype(np.float32)
    wanted = count + (among is None)
    found = index.search(asked, wanted)[1]
    while found.min() < 0:
        # the cells that were searched hold too few points
        index.nprobe *= 2
        found = index.search(asked, wanted)[1]
    return found.astype(np.int64) if among is not None else _others(found.astype(np.int64))


def _index(points: Features) -> Any:
    """Return an index of points (n, d)."""
    import faiss

    n, d = points.shape
    index: Any = faiss.IndexFlatL2(d)
    if n > EXACT:
        index = faiss.IndexIVFFlat(index, d, int(CELLS * np.sqrt(n)))
        index.cp.niter, index.cp.max_points_per_centroid = ROUNDS, OF_EACH_CELL
        # with fewer, Faiss warns on the console
        index.cp.min_points_per_centroid = 1
        index.train(points)
        index.nprobe = SEARCHED
    index.add(points)
    return index


def _others(found: Ints) -> Ints:
    """Return the neighbours (n, count) among those found (n, count + 1), where each point is one of its own."""
    n, last = len(found), found.shape[1] - 1
    itself = found == np.arange(n)[:, None]
    # so many points may be equal that a point is not among those found
    itself[~itself.any(axis=1), last] = True
    return found[~itself].reshape(n, last)
