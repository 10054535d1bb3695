"""Csv files that hold text of users: a spreadsheet must not run any of it as a formula."""

import csv
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from mela import store
from mela.atomic import replacing

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


def harmless_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose cells are all `harmless`."""
    texts = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    return table.assign(**{name: table[name].map(harmless, na_action="ignore") for name in texts})


def write_text_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table that holds text of users; text is quoted, and numbers have six digits."""
    numbers = [name for name in table.columns if pd.api.types.is_float_dtype(table[name])]
    rounded = table.assign(**{name: table[name].map(lambda value: float(f"{value:.6g}")) for name in numbers})
    with replacing(path) as temporary:
        # pandas would quote the numbers as well if they had a format
        harmless_table(rounded).to_csv(temporary, index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def read_text_csv(path: Path, schema: pa.Schema) -> pd.DataFrame:
    """Read what `write_text_csv` wrote, as `mela.store.read_csv` does, with all text as users wrote it."""
    table = store.read_csv(path, schema)
    texts = [field.name for field in schema if field.type == pa.string()]
    return table.assign(**{name: table[name].map(as_written) for name in texts})
