r"""Build a tree by average linkage where most pairs are not alike at all, so that a table holds only those that are.

Average linkage joins the two groups whose closeness, averaged over all their pairs, is largest. It does not matter in
which order pairs of groups are joined that are each other's closest, since joining them brings neither closer to a
third group than one of them was (it is *reducible*; Bruynooghe, "Classification ascendante hiérarchique des grands
ensembles de données", 1978). So all such pairs are joined at once, and the steps are sorted afterwards.
"""

import numpy as np
from scipy.sparse import csr_array, triu

from mela.data.array_types import Floats, Ints
from mela.labeling.mutual_pairs import joined_sums, mutual_pairs, numbers_after


def average_tree(closeness: csr_array) -> Floats:
    """Return the tree (n - 1, 4) that average linkage builds for distances of 1 - closeness, as scipy returns it.

    What is not alike at all is joined last, at a distance of 1, by the order of the items. Of equal distances, scipy
    may join others first.

    Parameters
    ----------
    closeness : float64 (n, n)
        Symmetric, from 0 to 1; what is on and below the diagonal does not count.
    """
    n = closeness.shape[0]
    sums = csr_array(triu(closeness, 1))
    # an item of each group stands for it
    names, sizes = np.arange(n), np.ones(n)
    joined: list[tuple[Ints, Ints, Floats]] = []
    while sums.nnz:
        low, high = (ends.astype(np.int64) for ends in sums.tocoo().coords)
        means = sums.data / (sizes[low] * sizes[high])
        some = mutual_pairs(low, high, means, len(sizes))
        u, v = low[some], high[some]
        joined.append((names[u], names[v], 1 - means[some]))
        number = numbers_after(len(sizes), u, v)
        sums = joined_sums(sums, number)
        sizes[u] += sizes[v]
        names, sizes = np.delete(names, v), np.delete(sizes, v)
    joined.append((np.full(len(names) - 1, names[0]), names[1:], np.ones(len(names) - 1)))
    one, other, heights = (np.concatenate(parts) for parts in zip(*joined, strict=True))
    return _steps(one, other, np.maximum(heights, 0))


def _steps(one: Ints, other: Ints, heights: Floats) -> Floats:
    """Return the rows of scipy's tree for joins of groups, of each of which an item is given."""
    # a join is never lower than those before that made its groups, apart from rounding
    order = np.argsort(heights, kind="stable")
    n = len(heights) + 1
    parents, nodes, sizes = np.arange(n).tolist(), np.arange(n).tolist(), [1] * n
    tree = np.empty((n - 1, 4))
    for step, row in enumerate(order.tolist()):
        first, second = _root(parents, int(one[row])), _root(parents, int(other[row]))
        low, high = sorted((nodes[first], nodes[second]))
        sizes[first] += sizes[second]
        tree[step] = low, high, heights[row], sizes[first]
        parents[second], nodes[first] = first, n + step
    return tree


def _root(parents: list[int], item: int) -> int:
    while parents[item] != item:
        parents[item] = parents[parents[item]]
        item = parents[item]
    return item
