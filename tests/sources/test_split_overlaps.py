"""Pictures in several splits."""

import numpy as np
import pytest

from mela.sources.split_overlaps import between_splits


@pytest.mark.parametrize("block", [1, 3, 1024])
def test_repeats_between_splits_are_found(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against all pairs; repeats within a split do not count."""
    monkeypatch.setattr("mela.sources.split_overlaps.BLOCK", block)
    rng = np.random.default_rng(0)
    kinds = rng.integers(0, 12, 30)
    pictures = rng.integers(0, 256, (12, 4, 4, 1), dtype=np.uint8)
    splits = rng.choice(["train", "val", "test"], 30).tolist()
    sources = [f"{number}.png" for number in range(30)]
    ids = rng.permutation(30)
    images = np.empty((30, 4, 4, 1), dtype=np.uint8)
    images[ids] = pictures[kinds]
    found = between_splits(images, ids, splits, sources)
    shared = {k for k in range(12) if len({splits[i] for i in range(30) if kinds[i] == k}) > 1}
    assert found is not None
    assert found.count == len(shared) > 2
    one, first, other, second = found.example
    assert one != other
    assert kinds[sources.index(first)] == kinds[sources.index(second)]
    assert splits[sources.index(first)] == one
    assert splits[sources.index(second)] == other


def test_repeats_within_a_split_are_none() -> None:
    images = np.zeros((4, 2, 2, 1), dtype=np.uint8)
    images[2:] = 1
    assert between_splits(images, np.arange(4), ["train", "train", "test", "test"], list("abcd")) is None
    found = between_splits(images, np.arange(4), ["train", "train", "test", "train"], list("abcd"))
    assert found is not None
    assert (found.count, found.example) == (1, ("test", "c", "train", "d"))
