"""Read a CSV file that people may edit as well, add rows to it, and take the last one back."""

import csv
import io
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mela.io.atomic import replacing
from mela.io.text_tables import find_separator, harmless, parse_csv, read_header, read_text

# of the order of bytes, which a spreadsheet may write first
MARK = "\ufeff"


def header(columns: Sequence[str]) -> str:
    """Return the file of a table without rows."""
    return _line(columns, ",")


def read_rows(path: Path, columns: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return where each row is, as messages tell it, and its cells of these columns.

    There are none where there is no such file, or it is empty. Errors are those of `mela.io.text_tables.parse_csv`.
    """
    text = read_text(path, str(path)) if path.exists() else ""
    if not text.strip():
        return []
    table = parse_csv(text, where=str(path), required=columns)
    rows = zip(*(table.columns[name] for name in columns), strict=True)
    return [(f"{path}, line {line}", list(cells)) for line, cells in zip(table.lines, rows, strict=True)]


def append_row(path: Path, columns: Sequence[str], cells: Sequence[Any]) -> None:
    """Write one more row at the end of a table, to the disk before this returns.

    A table that somebody has begun keeps its separator and its columns; one that is not there gets a header.
    """
    text = read_text(path, str(path)) if path.exists() else ""
    separator = find_separator(text, columns)
    there = read_header(text, separator) if text.strip() else []
    content = header(columns) if not there else "" if text[-1] in "\r\n" else "\n"
    named = dict(zip(columns, cells, strict=True))
    content += _line([harmless(str(named.get(name, ""))) for name in there or columns], separator)
    # blanks alone would be taken for a header
    with path.open("wb" if text and not there else "ab") as file:
        file.write(content.encode())
        file.flush()
        os.fsync(file.fileno())


def remove_last_row(path: Path, columns: Sequence[str]) -> None:
    """Take the last row out of a table, which has one; all else stays as it is."""
    # behind a link the table itself is what changes
    path = path.resolve()
    text = path.read_bytes().decode("utf-8")
    table = parse_csv(text.removeprefix(MARK), where=str(path), required=columns)
    # only these end a line for the module csv, while str.splitlines knows more
    kept = list(io.StringIO(text, newline=""))[: table.lines[-1] - 1]
    with replacing(path) as temporary:
        temporary.write_bytes("".join(kept).encode())
        shutil.copymode(path, temporary)


def _line(cells: Sequence[str], separator: str) -> str:
    content = io.StringIO()
    csv.writer(content, quoting=csv.QUOTE_ALL, lineterminator="\n", delimiter=separator).writerow(cells)
    return content.getvalue()
