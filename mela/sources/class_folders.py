"""Read images sorted into one folder per class."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from mela.io.reading_errors import Report, refuse
from mela.io.text_tables import read_text
from mela.sources.folder_tree import check_files
from mela.sources.image_files import load_by_source, open_below, require_folder, walk_images
from mela.sources.source import ImageSource
from mela.sources.split_tables import parse_split_table
from mela.sources.splits_by_name import split_by_fractions


def folder(
    root: Path,
    *,
    split_table: Path | None,
    split_fractions: Sequence[float],
    seed: int,
    report: Report = refuse,
) -> ImageSource:
    """Read images whose class is the folder that holds them.

    Parameters
    ----------
    root : Path
        Every folder below it that holds images is a class, named by its path below `root` ("alphabet/character").
        Files with other suffixes than those of images, and whatever starts with a dot, are passed over.
    split_table : Path or None
        CSV with the columns ``split`` and ``class``; classes that it does not name are not used.
    split_fractions : sequence of float, length 3
        Without a table: the shares of train, val and test, by which the classes (not the images) are split.
    seed : int
        Seed of that split.
    report : callable
        Told of each problem; what is wrong is left out.

    Returns
    -------
    ImageSource
        Classes sorted, and images sorted by name within each.
    """
    require_folder(root, "data.root")
    check_files(root, report=report)
    names_of = dict(sorted(walk_images(root, report=report)))
    for name in names_of.pop("", ()):
        report(
            f"{root}: expected one folder per class, got the image {name!r} in no folder; "
            "move it into the folder of its class"
        )
    names_below = {label: [f"{label}/{name}" for name in names] for label, names in names_of.items()}
    return source_of_names(
        root, names_below, split_table=split_table, split_fractions=split_fractions, seed=seed, report=report
    )


def source_of_names(
    root: Path,
    names_of: Mapping[str, Sequence[str]],
    *,
    split_table: Path | None,
    split_fractions: Sequence[float],
    seed: int,
    report: Report = refuse,
) -> ImageSource:
    """Split classes, and return their images.

    Parameters
    ----------
    root : Path
    names_of : mapping of str to sequence of str
        From class to its images, by their path below `root`.
    split_table, split_fractions, seed, report
        See `folder`.
    """
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
    used = [(label, name) for label, names in names_of.items() if label in split_of for name in names]
    sources = [source for _, source in used]
    return ImageSource(
        splits=[split_of[label] for label, _ in used],
        sources=sources,
        load=partial(load_by_source, partial(open_below, root), sources),
        classes=[label for label, _ in used],
        split_of_names={label: split_of[label] for label, _ in used},
    )
