"""Read the table that gives each class its split."""

from collections.abc import Collection

from mela.io.reading_errors import Report, refuse
from mela.io.schemas import SPLITS
from mela.io.text_tables import as_known, parse_csv


def parse_split_table(text: str, *, where: str, known: Collection[str] = (), report: Report = refuse) -> dict[str, str]:
    """Parse a table with the columns ``split`` and ``class``; report wrong rows and leave them out.

    Parameters
    ----------
    text : str
    where : str
        What messages call the table.
    known : collection of str
        Names that are classes as they are; others are read without the blanks around them, and so are splits.
    report : callable

    Returns
    -------
    dict
        From class to split, classes sorted.
    """
    table = parse_csv(text, where=where, required=("split", "class"), report=report)
    split_of: dict[str, str] = {}
    splits = [cell.strip() for cell in table.columns["split"]]
    classes = [as_known(cell, known) for cell in table.columns["class"]]
    for line, split, label in zip(table.lines, splits, classes, strict=True):
        if split not in SPLITS:
            report(f"{where}, line {line}: expected the split {' or '.join(SPLITS)}, got {split!r}; correct it")
        if not label:
            report(f"{where}, line {line}: expected a class, got an empty cell; fill it or remove the row")
        elif label in split_of:
            report(f"{where}, line {line}: expected every class once, got {label!r} again; remove the row")
        else:
            split_of[label] = split
    if "train" not in split_of.values() and set(SPLITS).issuperset(splits):
        report(f"{where}: expected classes in the split 'train', got none; add them")
    return {label: split for label, split in sorted(split_of.items()) if split in SPLITS}
