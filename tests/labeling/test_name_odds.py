"""Evidence of names: against drawing one after the other, against recounting, and against a plain loop."""

import numpy as np
import pytest

from mela.labeling.name_odds import Names

N, K, G = 60, 7, 5


def some_names(seed: int, concentration: float = 0.7, n_owners: int = N) -> tuple[Names, np.ndarray]:
    rng = np.random.default_rng(seed)
    groups = np.concatenate([np.arange(G), rng.integers(G, size=N - G)])
    names = Names(groups=groups, owners=rng.integers(n_owners, size=N), concentration=concentration)
    return names, np.concatenate([np.arange(K), rng.integers(-1, K, size=N - K)])


@pytest.mark.parametrize("concentration", [0.05, 1.0, 40.0])
def test_the_evidence_is_that_of_drawing_one_name_after_the_other(concentration: float) -> None:
    """Polya's urn, in any order, if everybody writes once."""
    names, clusters = some_names(0, concentration)
    names = Names(groups=names.groups, owners=np.arange(N), concentration=concentration)
    shares = np.bincount(names.groups) / N
    drawn, total, found = np.zeros((K, G)), np.zeros(K), 0.0
    for row in np.random.default_rng(1).permutation(N):
        v, g = clusters[row], names.groups[row]
        if v >= 0:
            found += np.log((drawn[v, g] + concentration * shares[g]) / (total[v] + concentration))
            drawn[v, g] += 1
            total[v] += 1
    assert names.log_evidence(clusters) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_merging_adds_what_the_evidence_gains(seed: int) -> None:
    names, clusters = some_names(seed, n_owners=9)
    counts = names.counts(clusters, K)
    for u, v in ((0, 3), (0, 5), (1, 6)):
        before = names.log_evidence(clusters)
        odds = counts.with_all(u)[v]
        assert odds == pytest.approx(counts.with_all(v)[u], abs=1e-12)
        clusters = np.where(clusters == v, u, clusters)
        counts.absorb(u, v)
        assert names.log_evidence(clusters) - before == pytest.approx(odds, abs=1e-9)


def test_a_person_counts_once_for_what_is_written_again_and_again() -> None:
    names = Names(groups=np.array([0, 0, 0, 1, 0]), owners=np.array([0, 0, 0, 0, 1]))
    np.testing.assert_allclose(names.weights, [1 / 3, 1 / 3, 1 / 3, 1, 1])
    np.testing.assert_allclose(names.shares, [2 / 3, 1 / 3])


def test_a_name_is_predicted_by_what_others_wrote() -> None:
    names, clusters = some_names(4, n_owners=12)
    rows = np.arange(N)
    counts, totals = names.of_others(clusters, K).counts(rows)
    for row in rows:
        same = (names.owners == names.owners[row]) & (names.groups == names.groups[row])
        for v in range(K):
            there = (clusters == v) & ~same
            assert totals[row, v] == pytest.approx(names.weights[there].sum(), abs=1e-12)
            assert counts[row, v] == pytest.approx(
                names.weights[there & (names.groups == names.groups[row])].sum(), abs=1e-12
            )
    ratios = (counts / names.shares[names.groups][:, None] + 0.7) / (totals + 0.7)
    np.testing.assert_allclose(names.of_others(clusters, K).log_ratios(rows), np.log(ratios))


def test_names_that_are_left_out_count_nowhere() -> None:
    """Whatever is asked is the same as if nobody had written them."""
    names, clusters = some_names(5, n_owners=12)
    few, kept = names.without(np.array([1, 3])), ~np.isin(names.groups, [1, 3])
    assert few.n_groups == G - 2
    np.testing.assert_array_equal(few.groups < 0, ~kept)
    alone = Names(groups=few.groups[kept], owners=names.owners[kept], concentration=names.concentration)
    np.testing.assert_allclose(few.weights, np.where(kept, names.weights, 0))
    np.testing.assert_allclose(few.shares, alone.shares)
    assert few.log_evidence(clusters) == pytest.approx(alone.log_evidence(clusters[kept]))
    np.testing.assert_allclose(few.counts(clusters, K).with_all(2), alone.counts(clusters[kept], K).with_all(2))
    ratios = few.of_others(clusters, K).log_ratios(np.arange(N))
    np.testing.assert_allclose(ratios[kept], alone.of_others(clusters[kept], K).log_ratios(np.arange(kept.sum())))
    np.testing.assert_array_equal(ratios[~kept], 0)


def test_names_of_one_person_are_not_shared() -> None:
    names = Names(groups=np.array([0, 0, 1, 2, 1]), owners=np.array([0, 0, 0, 1, 1]))
    shared = names.shared(np.arange(5) < 5)
    np.testing.assert_array_equal(shared.groups, [-1, -1, 0, -1, 0])
    assert shared.n_groups == 1
    assert names.shared(np.array([True, True, False, True, True])).n_groups == 0, (
        "one person alone, of those that count"
    )
