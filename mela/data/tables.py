"""CSV tables as text, with the line of every row, and the table that gives each class its split."""

import csv
import io
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

from mela.data.problems import Report, refuse, stop_at
from mela.data.source import SPLITS
from mela.errors import MelaError

TEXT_SUFFIXES = (".csv", ".tsv")
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Columns of text, and the line of the file on which each row starts (the header being line 1)."""

    columns: dict[str, list[str]]
    lines: list[int]


def read_text(path: Path, key: str) -> str:
    """The text of the UTF-8 file `path`, the value of the parameter `key`; a byte order mark is dropped."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len((error.object[: error.start] + b"?").splitlines())
        raise MelaError(f"{path}, line {line}: expected text in UTF-8, got {error.reason}; save it as UTF-8") from error
    except OSError as error:
        raise MelaError(f"{key}: expected a readable file at {path}, got {error.strerror}; set {key}") from error


def parse_csv(text: str, *, where: str, required: Sequence[str], report: Report = refuse) -> TextTable:
    """Parse separated values without guessing types: every cell stays text.

    Cells are separated by commas, or by semicolons, tabs or bars if the header shows it. Blank lines are passed over;
    columns beyond the required ones are kept.

    Parameters
    ----------
    text : str
    where : str
        What messages call the table.
    required : sequence of str
        Columns that must be there.
    report : callable
        Told of each row of another length than the header, which is left out.

    Raises
    ------
    MelaError
        For a missing or repeated column, a row of another length than the header, and bad quoting.
    """
    separator = find_separator(text, required)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    rows, lines, before = [], [], 0
    try:
        for cells in reader:
            if cells:
                rows.append(cells)
                lines.append(before + 1)
            before = reader.line_num
    except csv.Error as error:
        kind = f"{SEPARATORS[separator]}-separated values"
        raise MelaError(f"{where}, line {before + 1}: expected {kind}, got {error}; fix it") from error
    header, rows, lines = (rows[0], rows[1:], lines[1:]) if rows else ([], [], [])
    if len(header) == 1 < len(required):
        raise MelaError(
            f"{where}: expected the columns {', '.join(map(repr, required))}, separated by commas, semicolons or tabs, "
            f"got only {header[0]!r}; separate them by commas"
        )
    require_columns(header, where=where, required=required, report=report)
    fitting = [len(cells) == len(header) for cells in rows]
    for line, cells, fits in zip(lines, rows, fitting, strict=True):
        if not fits:
            report(
                f"{where}, line {line}: expected {len(header)} cells as in the header, got {len(cells)}; "
                f"complete the row, or quote cells that hold a {SEPARATORS[separator]}"
            )
    rows, lines = list(compress(rows, fitting)), list(compress(lines, fitting))
    return TextTable(columns={name: [cells[i] for cells in rows] for i, name in enumerate(header)}, lines=lines)


def read_header(text: str, separator: str) -> list[str]:
    """Return the cells of the first row that is not blank; none where it cannot be read."""
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
        return next((cells for cells in reader if cells), [])
    except csv.Error:
        return []


def find_separator(text: str, wanted: Collection[str]) -> str:
    """Return the separator by which the header has most of the wanted columns; a comma where none has any.

    Names that differ in case or blanks count where no separator has all of the wanted ones.
    """
    headers = {mark: read_header(text, mark) for mark in SEPARATORS}
    exact = next((mark for mark, header in headers.items() if set(wanted) <= set(header)), None)
    alike = set(map(folded, wanted))
    return exact or max(headers, key=lambda mark: len(alike & set(map(folded, headers[mark]))))


def folded(name: str) -> str:
    """Return what column names have in common that differ in case or blanks."""
    return "".join(name.split()).casefold()


def require_columns(header: Sequence[str], *, where: str, required: Sequence[str], report: Report = refuse) -> None:
    """Raise MelaError unless every required column is in `header`, and none twice; all but the last are reported."""
    got = ", ".join(map(repr, header)) or "no header"
    missing = [name for name in required if name not in header]
    repeated = [name for name, count in Counter(header).items() if count > 1]
    alike = {folded(name): name for name in reversed(header) if name not in required}
    advice = {
        name: f"rename {alike[folded(name)]!r}" if folded(name) in alike else "add the column" for name in missing
    }
    stop_at(
        [f"{where}: expected the column {name!r}, got {got}; {advice[name]}" for name in missing]
        + [f"{where}: expected every column once, got {got}; remove one {name!r}" for name in repeated],
        report,
    )


def parse_split_table(text: str, *, where: str, known: Collection[str] = (), report: Report = refuse) -> dict[str, str]:
    """Parse a table with the columns ``split`` and ``class``; rows that are wrong are reported and left out.

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


def as_known(cell: str, known: Collection[str]) -> str:
    """Return a cell without the blanks around it, unless it is a known name with them."""
    return cell if cell in known else cell.strip()
