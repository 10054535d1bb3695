"""Read users' CSV files in any usual form, and write them so that a spreadsheet runs no cell as a formula.

The module csv reads them, because pandas fills short rows silently and does not tell the line of a row. The column
names decide on the separator, while csv.Sniffer would guess it from character counts.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from mela.errors import MelaError
from mela.io import store
from mela.io.atomic import replacing
from mela.io.reading_errors import Report, refuse

TEXT_SUFFIXES = (".csv", ".tsv")
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Hold columns of text, and the line of the file on which each row starts (the header being line 1)."""

    columns: dict[str, list[str]]
    lines: list[int]


def read_text(path: Path, key: str) -> str:
    """Return the text of the UTF-8 file `path`, the value of the parameter `key`, without a byte order mark."""
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
    """Return the cells of the first row that is not blank; none if it cannot be read."""
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
        return next((cells for cells in reader if cells), [])
    except csv.Error:
        return []


def find_separator(text: str, wanted: Collection[str]) -> str:
    """Return the separator that gives the header most of the wanted columns; a comma if none gives any.

    Names that differ in case or blanks count where no separator has all of the wanted ones.
    """
    headers = {mark: read_header(text, mark) for mark in SEPARATORS}
    exact = next((mark for mark, header in headers.items() if set(wanted) <= set(header)), None)
    alike = set(map(folded, wanted))
    return exact or max(headers, key=lambda mark: len(alike & set(map(folded, headers[mark]))))


def folded(name: str) -> str:
    """Return the common form of column names that differ only in case or blanks."""
    return "".join(name.split()).casefold()


def require_columns(header: Sequence[str], *, where: str, required: Sequence[str], report: Report = refuse) -> None:
    """Raise MelaError unless every required column is in `header` once; all but the last are reported."""
    got = ", ".join(map(repr, header)) or "no header"
    missing = [name for name in required if name not in header]
    repeated = [name for name, count in Counter(header).items() if count > 1]
    alike = {folded(name): name for name in reversed(header) if name not in required}
    advice = {
        name: f"rename {alike[folded(name)]!r}" if folded(name) in alike else "add the column" for name in missing
    }
    problems = [f"{where}: expected the column {name!r}, got {got}; {advice[name]}" for name in missing]
    problems += [f"{where}: expected every column once, got {got}; remove one {name!r}" for name in repeated]
    for problem in problems[:-1]:
        report(problem)
    if problems:
        # beyond them nothing can be read
        refuse(problems[-1])


def as_known(cell: str, known: Collection[str]) -> str:
    """Return a cell without the blanks around it, unless it is a known name with them."""
    return cell if cell in known else cell.strip()


# What spreadsheets take for the start of a formula, in both widths, and the white space that some of them skip first.
FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def harmless(cell: Any) -> Any:
    """Return a cell that a spreadsheet shows and does not run; `as_written` turns it back.

    Text that a spreadsheet would run gets an apostrophe in front. Numbers, and text that is a number such as "-5", stay
    as they are.
    """
    if isinstance(cell, str) and FORMULA.match(cell) and not NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def as_written(cell: Any) -> Any:
    """Return the cell that `harmless` was given."""
    if isinstance(cell, str) and cell.startswith("'") and FORMULA.match(cell):
        return cell[1:]
    return cell


def write_text_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table that holds text of users; text is quoted, and numbers have six digits."""
    numbers = [name for name in table.columns if pd.api.types.is_float_dtype(table[name])]
    texts = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    rounded = table.assign(**{name: table[name].map(lambda value: float(f"{value:.6g}")) for name in numbers})
    harmless_cells = rounded.assign(**{name: table[name].map(harmless, na_action="ignore") for name in texts})
    with replacing(path) as temporary:
        # pandas would quote the numbers as well if they had a format
        harmless_cells.to_csv(temporary, index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def read_text_csv(path: Path, schema: pa.Schema) -> pd.DataFrame:
    """Read what `write_text_csv` wrote, with all text as users wrote it."""
    table = store.read_csv(path, schema)
    texts = [field.name for field in schema if field.type == pa.string()]
    return table.assign(**{name: table[name].map(as_written) for name in texts})
