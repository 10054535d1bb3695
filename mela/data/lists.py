"""Lists of files as tables that any spreadsheet opens, and that are read again as they were written.

Each path begins with ``./``, so that no spreadsheet takes a name such as ``=1+1.png`` for a formula. Names that are not
UTF-8 keep their bytes.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mela.atomic import replacing
from mela.data.tables import parse_csv
from mela.errors import MelaError

HERE = "./"
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def path_cell(path: str) -> str:
    """Return the cell of a path."""
    return HERE + path


def text_cell(text: str) -> str:
    """Return the cell of a text, with an apostrophe in front where a spreadsheet would run it as a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def write_list(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Write a table of text."""
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator="\n").writerows([header, *rows])
    with replacing(path) as temporary:
        temporary.write_bytes(written.getvalue().encode("utf-8", "surrogateescape"))


def read_list(path: Path, header: Sequence[str]) -> list[dict[str, str]]:
    """Read a table that `write_list` wrote.

    Raises
    ------
    MelaError
        It is not there, or something else.
    """
    if not path.is_file():
        raise MelaError(f"{path}: no such file; name the folder that `mela data check --set-aside` made")
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    table = parse_csv(text, where=str(path), required=header)
    return [dict(zip(header, cells, strict=True)) for cells in zip(*(table.columns[h] for h in header), strict=True)]


def read_path(cells: Mapping[str, str], column: str, where: Path) -> str:
    """Return the path in a cell; raise MelaError for one that leaves its folder."""
    path = cells[column].removeprefix(HERE)
    parts = path.split("/")
    if cells[column] != HERE + path or "" in parts or ".." in parts or "\0" in path or Path(path).is_absolute():
        raise MelaError(
            f"{where}: expected {column} to be a path such as './a/b.png', got {cells[column]!r}; correct it"
        )
    return path
