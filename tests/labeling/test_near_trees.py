"""Average linkage of a few alike, against scipy's of all pairs."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform
from sklearn.metrics import adjusted_rand_score

from mela.labeling.near_trees import average_tree


def alike(n: int, share: float, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    found = np.triu(rng.random((n, n)) * (rng.random((n, n)) < share), 1)
    return found + found.T


def of_scipy(closeness: np.ndarray) -> np.ndarray:
    distances = 1 - closeness
    np.fill_diagonal(distances, 0)
    return linkage(squareform(distances, checks=False), "average")


@pytest.mark.parametrize(("n", "share"), [(2, 0.0), (2, 1.0), (3, 1.0), (60, 0.3), (200, 0.1), (300, 0.01)])
def test_the_tree_of_scipy(n: int, share: float) -> None:
    closeness = alike(n, share, n)
    found, wanted = average_tree(csr_array(closeness)), of_scipy(closeness)
    assert is_valid_linkage(found)
    np.testing.assert_allclose(found[:, 2], wanted[:, 2], atol=1e-12)
    told = wanted[:, 2] < 1
    assert (found[told] == np.column_stack([wanted[:, :2], found[:, 2], wanted[:, 3]])[told]).all()
    assert found[-1, 3] == n


def test_equal_distances_lead_to_a_tree_of_the_same_heights() -> None:
    """Three groups in which all are equally alike, and two of them a little to each other."""
    closeness = np.kron(np.diag([0.75, 0.75, 0.5]), np.ones((4, 4)))
    closeness[:4, 4:8] = closeness[4:8, :4] = 0.25
    found = average_tree(csr_array(closeness))
    assert found[:, 2].tolist() == [0.25] * 6 + [0.5] * 3 + [0.75, 1.0]
    groups = np.repeat([0, 1, 2], 4)
    assert adjusted_rand_score(groups, fcluster(found, 0.6, "distance")) == 1


def test_only_what_is_above_the_diagonal_counts() -> None:
    closeness = alike(40, 0.3, 0)
    whole = average_tree(csr_array(closeness))
    assert (average_tree(csr_array(np.triu(closeness, 1))) == whole).all()
    assert (average_tree(csr_array(closeness + 5 * np.eye(40))) == whole).all()
