"""Read images of known classes: those that are sorted into one folder per class, or whose class a table tells."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from mela.io.reading_errors import Report, refuse
from mela.io.text_tables import read_text
from mela.sources.folder_tree import check_files
from mela.sources.image_files import load_by_source, open_below, require_folder, walk_images
from mela.sources.source import ImageSource
from mela.sources.split_tables import parse_split_table
from mela.sources.splits_by_name import split_by_fractions


def folder_names(root: Path, report: Report) -> dict[str, list[str]]:
    """Return the images of each class, by their path below `root`, where the folder that holds an image is its class.

    Every folder below `root` that holds images is a class, named by its path ("alphabet/character"). Files with other
    suffixes than those of images, and whatever starts with a dot, are passed over.
    """
    names_of = dict(sorted(walk_images(root, report=report)))
    for name in names_of.pop("", ()):
        report(
            f"{root}: expected one folder per class, got the image {name!r} in no folder; "
            "move it into the folder of its class"
        )
    return {label: [f"{label}/{name}" for name in names] for label, names in names_of.items()}


def folder(
    root: Path,
    *,
    split_table: Path | None,
    split_fractions: Sequence[float],
    seed: int,
    report: Report = refuse,
    names: Callable[[Path, Report], Mapping[str, Sequence[str]]] = folder_names,
) -> ImageSource:
    """Read images of known classes, and split the classes.

    Parameters
    ----------
    root : Path
    split_table : Path or None
        CSV with the columns ``split`` and ``class``; classes that it does not name are not used.
    split_fractions : sequence of float, length 3
        Without a table: the shares of train, val and test, by which the classes (not the images) are split.
    seed : int
        Seed of that split.
    report : callable
        Told of each problem; what is wrong is left out.
    names : callable, default=folder_names
        Takes `root` and `report`; returns the images of each class by their path below `root`, both sorted.

    Returns
    -------
    ImageSource
        Classes sorted, and images sorted by name within each.
    """
    require_folder(root, "data.root")
    check_files(root, report=report)
    names_of = names(root, report)
    if split_table is None:
        split_of = split_by_fractions(dict.fromkeys(names_of, 1), split_fractions, seed=seed)
    else:
        text = read_text(split_table, "data.table")
        split_of = parse_split_table(text, where=str(split_table), known=names_of, report=report)
        for label in (label for label in split_of if label not in names_of):
            report(
                f"{split_table}: expected images of the class {label!r} in {root}, got none; "
                "add the images, or remove the class from the table"
            )
    used = [(label, name) for label, own in names_of.items() if label in split_of for name in own]
    sources = [source for _, source in used]
    return ImageSource(
        splits=[split_of[label] for label, _ in used],
        sources=sources,
        load=partial(load_by_source, partial(open_below, root), sources),
        classes=[label for label, _ in used],
        split_of_names={label: split_of[label] for label, _ in used},
    )
