"""Group names that are alike, such as "Maple tree" and "maple", or "mapel" and "maple"."""

import unicodedata
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from mela.data.array_types import Ints
from mela.labeling.nearest_points import ALL_PAIRS

# letters of a name that are compared
LONGEST = 60
SCRIPTS = ("LATIN", "GREEK", "CYRILLIC")
# how alike the names of a group are on average, in percent: as sequences of characters, and as sets of words
BY_CHARACTERS, BY_WORDS = (90, 80), (100, 90)


def name_groups(names: Sequence[str]) -> Iterator[Ints]:
    """Yield the group (n,) of each name, from 0, by several notions of what is alike.

    First come names that differ in nothing but case, accents and punctuation. Then average linkage joins those whose
    characters are nearly the same, and those that share words; scores are those of RapidFuzz. Of more than 5,000
    different names, only the first groups are yielded, since the others need all pairs.
    """
    plain, of_names = np.unique([plain_name(name) for name in names], return_inverse=True)
    yield of_names.astype(np.int64)
    if not 1 < len(plain) <= ALL_PAIRS:
        return
    from rapidfuzz import fuzz, process

    seen = {tuple(range(len(plain)))}
    for scorer, levels in ((fuzz.ratio, BY_CHARACTERS), (fuzz.token_set_ratio, BY_WORDS)):
        alike: npt.NDArray[np.uint8] = process.cdist(plain, plain, scorer=scorer, dtype=np.uint8)
        far = 100.0 - np.minimum(alike, alike.T)
        np.fill_diagonal(far, 0)
        tree = linkage(squareform(far, checks=False), "average")
        for level in levels:
            groups = fcluster(tree, 100 - level, "distance").astype(np.int64) - 1
            if (key := tuple(groups.tolist())) not in seen:
                seen.add(key)
                yield groups[of_names]


def plain_name(name: str) -> str:
    """Return a name without case, accents, punctuation and all after 60 letters; itself where nothing would be left.

    Marks are accents in Latin, Greek and Cyrillic. In other scripts they make another word.
    """
    kept, with_accents = [], False
    for sign in unicodedata.normalize("NFKD", name[:LONGEST].casefold()):
        if not unicodedata.category(sign).startswith("M"):
            with_accents = unicodedata.name(sign, "").startswith(SCRIPTS)
            kept.append(" " if unicodedata.category(sign)[0] in "PZC" else sign)
        elif not with_accents:
            kept.append(sign)
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split()) or name
