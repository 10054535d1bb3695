"""CSV tables as text, with the line of every row, and the table that gives each class its split."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mela.data.source import SPLITS
from mela.errors import MelaError


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Columns of text, and the line of the file on which each row starts (the header being line 1)."""

    columns: dict[str, list[str]]
    lines: list[int]


def read_text(path: Path, key: str) -> str:
    """The text of the UTF-8 file `path`, the value of the parameter `key`; a byte order mark is dropped."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise MelaError(f"{path}: expected text in UTF-8, got {error.reason}; save it as UTF-8") from error
    except OSError as error:
        raise MelaError(f"{key}: expected a readable file at {path}, got {error.strerror}; set {key}") from error


def parse_csv(text: str, *, where: str, required: Sequence[str]) -> TextTable:
    """Parse comma-separated values without guessing types: every cell stays text.

    Blank lines are passed over; columns beyond the required ones are kept.

    Parameters
    ----------
    text : str
    where : str
        What messages call the table.
    required : sequence of str
        Columns that must be there.

    Raises
    ------
    MelaError
        For a missing or repeated column, a row of another length than the header, and bad quoting.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows, lines, before = [], [], 0
    try:
        for cells in reader:
            if cells:
                rows.append(cells)
                lines.append(before + 1)
            before = reader.line_num
    except csv.Error as error:
        raise MelaError(f"{where}, line {before + 1}: expected comma-separated values, got {error}; fix it") from error
    header, rows, lines = (rows[0], rows[1:], lines[1:]) if rows else ([], [], [])
    require_columns(header, where=where, required=required)
    for line, cells in zip(lines, rows, strict=True):
        if len(cells) != len(header):
            raise MelaError(
                f"{where}, line {line}: expected {len(header)} cells as in the header, got {len(cells)}; "
                "complete the row, or quote cells that hold a comma"
            )
    return TextTable(columns={name: [cells[i] for cells in rows] for i, name in enumerate(header)}, lines=lines)


def require_columns(header: Sequence[str], *, where: str, required: Sequence[str]) -> None:
    """Raise MelaError unless every required column is in `header`, and none twice."""
    got = ", ".join(map(repr, header)) or "no header"
    for name in required:
        if name not in header:
            raise MelaError(f"{where}: expected the column {name!r}, got {got}; add the column")
    for name in header:
        if header.count(name) > 1:
            raise MelaError(f"{where}: expected every column once, got {got}; remove one {name!r}")


def parse_split_table(text: str, *, where: str) -> dict[str, str]:
    """Parse a table with the columns ``split`` and ``class``.

    Returns
    -------
    dict
        From class to split, classes sorted.
    """
    table = parse_csv(text, where=where, required=("split", "class"))
    split_of: dict[str, str] = {}
    for line, split, label in zip(table.lines, table.columns["split"], table.columns["class"], strict=True):
        if split not in SPLITS:
            raise MelaError(
                f"{where}, line {line}: expected the split {' or '.join(SPLITS)}, got {split!r}; correct it"
            )
        if not label.strip():
            raise MelaError(f"{where}, line {line}: expected a class, got an empty cell; fill it or remove the row")
        if label in split_of:
            raise MelaError(f"{where}, line {line}: expected every class once, got {label!r} again; remove the row")
        split_of[label] = split
    if "train" not in split_of.values():
        raise MelaError(f"{where}: expected classes in the split 'train', got none; add them")
    return dict(sorted(split_of.items()))
