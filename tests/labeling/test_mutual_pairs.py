"""Mutual pairs and sums of joined items, against plain loops."""

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mela.labeling.mutual_pairs import joined_sums, mutual_pairs, numbers_after


@given(n=st.integers(2, 9), seed=st.integers(0, 2**31), levels=st.integers(1, 30))
def test_pairs_are_closest_to_each_other(n: int, seed: int, levels: int) -> None:
    rng = np.random.default_rng(seed)
    every = np.array(list(combinations(range(n), 2)))
    low, high = every[rng.permutation(len(every))[: rng.integers(1, len(every) + 1)]].T
    closeness = rng.integers(levels, size=len(low)).astype(np.float64)
    found = mutual_pairs(low, high, closeness, n).tolist()
    ends = [end for pair in found for end in (low[pair], high[pair])]
    assert len(set(ends)) == len(ends)
    assert np.argmax(closeness) in found
    assert closeness[found].tolist() == sorted(closeness[found], reverse=True)
    for pair in range(len(low)):
        rivals = (np.isin(low, (low[pair], high[pair]))) | np.isin(high, (low[pair], high[pair]))
        if closeness[rivals].max() > closeness[pair]:
            assert pair not in found
        elif (closeness[rivals] == closeness[pair]).sum() == 1:
            assert pair in found


@given(n=st.integers(2, 8), seed=st.integers(0, 2**31))
def test_sums_of_joined_items(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = np.triu(rng.integers(4, size=(n, n)), 1).astype(np.float64)
    order = rng.permutation(n)
    p = int(rng.integers(1, n // 2 + 1))
    u, v = order[:p], order[p : 2 * p]
    number = numbers_after(n, u, v)
    assert number.max() + 1 == n - p
    assert (number[u] == number[v]).all()
    # those that stay keep their order
    assert (np.diff(number[np.setdiff1d(np.arange(n), v)]) == 1).all()
    both = table + table.T
    wanted = np.zeros((n - p, n - p))
    for i in range(n):
        for j in range(n):
            wanted[number[i], number[j]] += both[i, j]
    found = joined_sums(csr_array(table), number).toarray()
    assert (found == np.triu(wanted, 1)).all()
