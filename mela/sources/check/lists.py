"""Write lists of files as csv tables, which hold names of any kind and are read as they were written.

No spreadsheet takes a cell for a formula. Names that are not UTF-8 keep their bytes, which pandas cannot hold.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from mela.errors import MelaError
from mela.io.atomic import replacing
from mela.io.text_tables import as_written, harmless, parse_csv


def write_list(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table of text."""
    written = io.StringIO(newline="")
    # all cells are quoted, since the module csv leaves a name with a carriage return bare, which then reads as two rows
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([harmless(cell) for cell in row] for row in rows)
    with replacing(path) as temporary:
        temporary.write_bytes(written.getvalue().encode("utf-8", "surrogateescape"))


def read_list(path: Path, header: Sequence[str]) -> list[tuple[str, ...]]:
    """Read the rows of a table that `write_list` wrote.

    Raises
    ------
    MelaError
        It is not there, or something else.
    """
    if not path.is_file():
        raise MelaError(f"{path}: no such file; name the folder that `mela data check --set-aside` made")
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    columns = parse_csv(text, where=str(path), required=header).columns
    return [tuple(map(as_written, cells)) for cells in zip(*(columns[name] for name in header), strict=True)]


def require_inside(path: str, where: Path) -> str:
    """Return a path of a list; raise MelaError if it leaves its folder."""
    parts = path.split("/")
    if "" in parts or ".." in parts or "\0" in path or Path(path).is_absolute():
        raise MelaError(f"{where}: expected a path below its folder, such as 'a/b.png', got {path!r}; correct it")
    return path
