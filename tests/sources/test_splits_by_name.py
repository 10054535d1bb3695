"""Which split a name belongs to, and that other names have next to nothing to do with it."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mela.io.schemas import SPLITS
from mela.sources.splits_by_name import split_by_fractions

USUAL = (0.64, 0.16, 0.2)
EXTREME = [(0.98, 0.01, 0.01), (0.1, 0.45, 0.45), (0.8, 0.0, 0.2), (0.9, 0.1, 0.0), (1.0, 0.0, 0.0)]
FRACTIONS = st.sampled_from([USUAL, (0.2, 0.2, 0.6), *EXTREME])
NAMES = st.lists(st.text(max_size=5), min_size=1, max_size=40, unique=True)
SEEDS = st.integers(0, 2**32 - 1)


def split(names: list[str], fractions: tuple[float, ...], seed: int) -> dict[str, str]:
    return split_by_fractions(dict.fromkeys(names, 1), fractions, seed=seed)


def moved(before: dict[str, str], after: dict[str, str]) -> list[tuple[str, str]]:
    return [(before[name], after[name]) for name in before if name in after and before[name] != after[name]]


@hypothesis_settings(deadline=None, max_examples=400)
@given(names=NAMES, fractions=FRACTIONS, seed=SEEDS)
def test_one_more_or_one_less_moves_at_most_one_across_each_border(
    names: list[str], fractions: tuple[float, ...], seed: int
) -> None:
    """The borders are those between train and val or test, and between val and test."""
    whole, without = split(names, fractions, seed), split(names[1:], fractions, seed)
    found = moved(without, whole)
    assert len(found) <= 2
    assert sum("train" in pair for pair in found) <= 1
    assert sum("test" in pair for pair in found) <= 1


@hypothesis_settings(deadline=None, max_examples=200)
@given(names=NAMES, new=st.text(max_size=5), fractions=FRACTIONS, seed=SEEDS)
def test_renaming_one_moves_at_most_four(names: list[str], new: str, fractions: tuple[float, ...], seed: int) -> None:
    renamed = [new, *(name for name in names[1:] if name != new)]
    assert len(moved(split(names, fractions, seed), split(renamed, fractions, seed))) <= 4


@hypothesis_settings(deadline=None, max_examples=400)
@given(names=NAMES, fractions=FRACTIONS, seed=SEEDS)
def test_every_wanted_split_has_its_part(names: list[str], fractions: tuple[float, ...], seed: int) -> None:
    found = split(names, fractions, seed)
    assert set(found) == set(names)
    counts = Counter(found.values())
    wanted = {name: share for name, share in zip(SPLITS, fractions, strict=True) if share > 0}
    assert set(counts) <= set(wanted)
    assert len(counts) == min(len(wanted), len(names))
    assert counts["train"] >= 1
    assert counts["val"] + counts["test"] >= min(len(names) - 1, (fractions[1] + fractions[2]) * len(names) / 2)
    assert found == split(names[::-1], fractions, seed)


def test_most_of_the_time_nobody_moves() -> None:
    """Where the names alone give every split its part, the places decide and one more person moves nobody."""
    names = [f"person {n}" for n in range(61)]
    found = [moved(split(names[:-1], USUAL, seed), split(names, USUAL, seed)) for seed in range(200)]
    assert found.count([]) >= 180


def test_shares_are_right_on_average() -> None:
    names = [f"person {n}" for n in range(50)]
    counts = Counter[str]()
    for seed in range(100):
        counts.update(split(names, USUAL, seed).values())
    assert [counts[name] / 5000 for name in SPLITS] == pytest.approx([0.64, 0.16, 0.2], abs=0.02)


def test_large_items_are_for_training_as_long_as_others_are_left() -> None:
    sizes = {"large": 6, "larger": 7} | {f"s{n}": 1 for n in range(10)}
    for seed in range(20):
        found = split_by_fractions(sizes, (0.5, 0.25, 0.25), seed=seed)
        assert found["large"] == found["larger"] == "train"
        few = split_by_fractions({"large": 6, "larger": 7}, (0.5, 0.25, 0.25), seed=seed)
        assert few == {"large": "test", "larger": "train"}
