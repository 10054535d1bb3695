"""Groups of alike names: what is alike, by each notion of it."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mela.labeling import alike_names
from mela.labeling.alike_names import name_groups

NAMES = ["Maple Tree", "maple_tree", "mapel tree", "the maple tree", "oak", "OAK", "Bäume", "baume", "?", "!", "7", "8"]


def together(groups: np.ndarray, *names: str) -> bool:
    return len({int(groups[NAMES.index(name)]) for name in names}) == 1


def test_case_accents_and_punctuation_make_no_difference() -> None:
    first = next(name_groups(NAMES))
    for same in (("Maple Tree", "maple_tree"), ("oak", "OAK"), ("Bäume", "baume")):
        assert together(first, *same)
    assert len(np.unique(first)) == len(NAMES) - 3
    assert not together(first, "?", "!"), "of these nothing else would be left"


def test_marks_are_accents_in_some_scripts_alone() -> None:
    """In Thai, Hindi and Japanese they make another word, as signs do that are no punctuation."""
    words = ["ปี", "ปู", "बिल", "बाल", "かき", "かぎ", "C++", "C#", "♂ duck", "♀ duck"]
    assert len(np.unique(next(name_groups(words)))) == len(words)
    accents = ["café", "cafe", "Ёлка", "елка", "ἄλφα", "αλφα"]
    found = next(name_groups(accents))
    np.testing.assert_array_equal(found[::2], found[1::2])
    assert len(np.unique(found)) == 3


def test_wrong_letters_and_further_words_are_alike_by_other_notions() -> None:
    rest = list(name_groups(NAMES))[1:]
    assert any(together(groups, "mapel tree", "Maple Tree") for groups in rest)
    assert any(together(groups, "the maple tree", "Maple Tree") for groups in rest)
    for groups in rest:
        assert not together(groups, "oak", "Maple Tree")
        assert not together(groups, "7", "8")


def test_each_notion_is_another_one() -> None:
    found = [tuple(groups.tolist()) for groups in name_groups(NAMES)]
    assert len(set(found)) == len(found) > 2
    assert [set(groups) for groups in found] == [set(range(max(groups) + 1)) for groups in found]
    assert len(list(name_groups(["one"] * 3))) == 1


@settings(max_examples=30)
@given(st.lists(st.text(max_size=8), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_the_order_makes_no_difference(names: list[str], random: Random) -> None:
    order = random.sample(range(len(names)), len(names))
    for one, other in zip(name_groups(names), name_groups([names[row] for row in order]), strict=True):
        np.testing.assert_array_equal(one[order], other)


def test_very_many_names_are_grouped_by_the_first_notion_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike_names, "ALL_PAIRS", 8)
    assert len(list(name_groups(NAMES))) == 1
