"""Choose by seed and names alone, whatever the order of files and the version of a library.

scikit-learn's GroupShuffleSplit shuffles all groups at once, so that one class more would move many others to another
split.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence

from mela.errors import MelaError
from mela.io.schemas import SPLITS

# share of all tasks from which on tasks that belong together are for training
LARGE = 0.1


def keyed_rank(*names: str, seed: int) -> str:
    """Return a pseudo-random sort key for what `names` name; another seed gives an unrelated order.

    An item's key does not depend on the other items, so that adding some leaves the order of the rest as it was.
    """
    return hashlib.sha256("\0".join((str(seed), *names)).encode(errors="surrogatepass")).hexdigest()


def split_by_fractions(sizes: Mapping[str, int], fractions: Sequence[float], *, seed: int) -> dict[str, str]:
    """Distribute items over train, val and test so that an item's split follows from its name.

    The seed and an item's name give it a place from 0 to 1, whatever the other items are. Below the first fraction it
    belongs to train, above that to val, and beyond the second one to test. Only where these numbers of items stray far
    from the fractions are the borders between the splits moved, to the next item: each split has at least half of its
    share, val and test together and test among them have their whole shares up to two items each, and no split whose
    fraction is not zero is empty unless there are too few items, where train comes before test, and test before val.

    So an item that is added or removed moves none of the others as long as the borders stay, and at most one item
    across each of the two borders otherwise. Renaming an item is to remove one and to add another.

    Parameters
    ----------
    sizes : mapping from str to int
        Size of every item: 1, or for instance the number of tasks that must stay together. Items of several tasks that
        hold more than a tenth of all are for train, as long as others are left for the other splits.
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
    train, val, test = fractions
    total = sum(sizes.values())
    place = {item: _place(item, seed) for item in sizes}
    large = {item for item, size in sizes.items() if size > 1 and size > LARGE * total}
    # from test to train: large items come last, the largest at the very end
    ordered = sorted(sizes, key=lambda item: (sizes[item] if item in large else 0, -place[item], item))
    small = [place[item] for item in sizes if item not in large]
    splits = (val > 0) + (test > 0)
    beyond = sum(at >= train for at in small)
    outside = _bounded(beyond, len(ordered), val + test, least=min(len(ordered) - 1, splits), whole=2 * splits)
    if splits == 2:
        beyond = sum(at >= train + val for at in small)
        tested = _bounded(beyond, outside, test / (val + test), least=min(outside, 1), whole=2)
    else:
        tested = outside if test > 0 else 0
    return {
        item: "test" if rank < tested else "val" if rank < outside else "train" for rank, item in enumerate(ordered)
    }


def _place(item: str, seed: int) -> float:
    return int(keyed_rank("split", item, seed=seed)[:13], 16) / 16**13


def _bounded(count: int, items: int, share: float, *, least: int, whole: int) -> int:
    """Bound the number of items beyond a border, `count`, to what `split_by_fractions` allows.

    One item more, on whichever side, makes the result larger by 0 or by 1, since that is so for `count` and for both
    bounds; this is why at most one other item crosses the border. The share is that of the items beyond the border
    among all. At least `least` have to be there, and up to `whole` of them as many as the share says.
    """
    lower = max(_up(share * items / 2), min(whole, math.floor(share * items + 0.5)), least)
    upper = max(items - _up((1 - share) * items / 2), least)
    return min(max(count, lower), upper)


def _up(value: float) -> int:
    """Round up, but not for errors in the last digit."""
    return math.ceil(value - 1e-9)
