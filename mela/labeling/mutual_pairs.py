"""Join items that are each other's closest, all such pairs at once."""

import numpy as np
from scipy.sparse import csr_array, tril, triu

from mela.data.array_types import Floats, Ints


def mutual_pairs(low: Ints, high: Ints, closeness: Floats, n: int) -> Ints:
    """Return which pairs of n items (p,) are as close as any other pair of both, by falling closeness.

    Where several such pairs share an item, the first is returned, so that all have different items.

    Parameters
    ----------
    low, high : int64 (p,)
        Items of each pair.
    closeness : float64 (p,)
    n : int
    """
    largest = np.full(n, -np.inf)
    np.maximum.at(largest, low, closeness)
    np.maximum.at(largest, high, closeness)
    found = np.flatnonzero((closeness == largest[low]) & (closeness == largest[high]))
    first = np.full(n, len(low))
    np.minimum.at(first, low[found], found)
    np.minimum.at(first, high[found], found)
    found = found[(first[low[found]] == found) & (first[high[found]] == found)]
    return found[np.argsort(-closeness[found], kind="stable")]


def numbers_after(n: int, u: Ints, v: Ints) -> Ints:
    """Return the new numbers (n,) of n items after items v (p,) went into items u (p,), all different."""
    left = np.ones(n, dtype=np.bool_)
    left[v] = False
    number = np.cumsum(left) - 1
    number[v] = number[u]
    return number


def joined_sums(table: csr_array, number: Ints) -> csr_array:
    """Return sums of a symmetric table (n, n), given above its diagonal, after items have these new numbers (n,)."""
    n = len(number)
    into = csr_array((np.ones(n), (np.arange(n), number)), shape=(n, int(number.max()) + 1))
    sums = csr_array(into.T @ table @ into)
    return csr_array(triu(sums, 1) + tril(sums, -1).T)
