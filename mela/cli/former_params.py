"""Convert params files of former versions to today's form."""

import io
import re
from typing import Any

from ruamel.yaml.comments import CommentedMap

from mela.errors import MelaError
from mela.io.commented_yaml import commented_yaml
from mela.params import LABELS

BLOCKS = ("labeler", "pretrain")
# what `pretrain.labels` was, and which labels are trained on and used today, where merging was on and where it was off
FORMER = {
    "mela": (("merged", "merged"), ("pruned", "pruned")),
    "mela_soft": (("merged_soft", "merged"), None),
    "kmeans": (("kmeans", "merged"), ("kmeans", "pruned")),
    "oracle": (("oracle", "merged"), ("oracle", "pruned")),
}


def convert(text: str, where: str) -> str:
    """Rewrite a params file of a former version, keeping its meaning.

    Comments are kept but for those of the keys that are gone. A file of today is returned as it is.

    Parameters
    ----------
    text : str
    where : str
        The file, for errors.

    Raises
    ------
    MelaError
        It is no such file, or trained on soft labels of pruning, which there are no more.
    """
    yaml = commented_yaml()
    document = yaml.load(text)
    data, labeler, pretrain = (
        document.get(name) if isinstance(document, CommentedMap) else None for name in ("data", *BLOCKS)
    )
    if not isinstance(labeler, CommentedMap) or not isinstance(pretrain, CommentedMap):
        raise MelaError(f"{where}: expected the blocks {' and '.join(BLOCKS)}, got others; name a params file")
    of_labels = "merge" in labeler or "labels" in pretrain
    if isinstance(data, CommentedMap) and "size" in data:
        if "image_size" in data:
            raise MelaError(f"{where}: data: expected image_size alone, got size as well; remove size")
        _rename(data, "size", "image_size")
    elif not of_labels:
        return text
    if of_labels:
        _insert_blocks(document, where)
    written = io.StringIO()
    yaml.dump(document, written)
    # a blank line before each of the new ones
    text = written.getvalue()
    return re.sub(r"\n+(?=(merging|compare|use|pretrain):)", "\n\n", text) if of_labels else text


def _rename(block: CommentedMap, old: str, new: str) -> None:
    """Give a key another name; its place and its comment remain."""
    place, comment = list(block).index(old), block.ca.items.pop(old, None)
    block.insert(place, new, block.pop(old))
    if comment is not None:
        block.ca.items[new] = comment


def _insert_blocks(document: CommentedMap, where: str) -> None:
    """Give a file from before the blocks `merging`, `compare` and `use` these blocks.

    Beside the labels that the file trained on, those in use are trained on too, since the report is about them.
    """
    labeler, pretrain = (document[name] for name in BLOCKS)
    merge, labels = labeler.pop("merge", True), pretrain.pop("labels", "mela")
    if not isinstance(merge, bool):
        raise MelaError(
            f"{where}: labeler.merge: expected true or false, got {merge!r}; correct it, then convert the file"
        )
    ways: Any = FORMER.get(str(labels), (None, None))[0 if merge else 1]
    if ways is None:
        raise MelaError(
            f"{where}: pretrain.labels: expected labels that there still are, got {labels!r} with labeler.merge="
            f"{str(merge).lower()}; set it to mela, then convert the file"
        )
    merging = CommentedMap({key: labeler[key] for key in ("collisions", "min_count", "seed") if key in labeler})
    compare = CommentedMap({name: name in ways for name in LABELS})
    place = list(document).index("pretrain")
    for name, block in (("use", ways[1]), ("compare", compare), ("merging", merging)):
        document.insert(place, name, block)
