"""Seeded choices that depend on names alone, neither on the order of files nor on the version of a library."""

import hashlib
from collections.abc import Mapping, Sequence

from mela.data.source import SPLITS
from mela.errors import MelaError


def keyed_rank(*names: str, seed: int) -> str:
    """A pseudo-random sort key for what `names` name; another seed gives an unrelated order.

    An item's key does not depend on the other items, so that adding some leaves the order of the rest as it was.
    """
    return hashlib.sha256("\0".join((str(seed), *names)).encode(errors="surrogatepass")).hexdigest()


def split_by_fractions(sizes: Mapping[str, int], fractions: Sequence[float], *, seed: int) -> dict[str, str]:
    """Distribute items over train, val and test.

    Larger items go first, equal ones in the order of `keyed_rank`, each to the split that lacks most of its share. The
    last items are kept for splits that would stay empty although their fraction is not zero; where there are fewer
    items than such splits, train comes first.

    Parameters
    ----------
    sizes : mapping from str to int
        Size of every item: 1, or for instance the number of tasks that must stay together.
    fractions : sequence of float, length 3
        Shares of train, val and test, which sum to 1.
    seed : int

    Returns
    -------
    dict
        From item to split.
    """
    sums_to_1 = abs(sum(fractions) - 1) <= 1e-6
    if not (len(fractions) == len(SPLITS) and min(fractions) >= 0 and fractions[0] > 0 and sums_to_1):
        raise MelaError(
            "data.split_fractions: expected three numbers (train above 0, val, test) that sum to 1, "
            f"got {list(fractions)}; correct them"
        )
    total = sum(sizes.values())
    lacking: dict[str, float] = {
        split: fraction * total for split, fraction in zip(SPLITS, fractions, strict=True) if fraction > 0
    }
    empty = set(lacking)
    split_of: dict[str, str] = {}
    ordered = sorted(sizes, key=lambda item: (-sizes[item], keyed_rank("split", item, seed=seed)))
    for i, item in enumerate(ordered):
        left = len(ordered) - i
        if left < len(empty) and "train" in empty:
            split = "train"
        else:
            open_to = [split for split in lacking if split in empty or left > len(empty)]
            split = max(open_to, key=lacking.__getitem__)
        lacking[split] -= sizes[item]
        empty.discard(split)
        split_of[item] = split
    return split_of
