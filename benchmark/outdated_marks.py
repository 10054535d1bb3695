"""List results of earlier code, data or parameters, which the tables mark until they are measured again."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow as pa

from mela.io import store
from mela.io.schemas import INT, TEXT

FILE = "outdated.csv"
SCHEMA = pa.schema({"data": TEXT, "system": TEXT, "seed": INT})
MARK = "\N{DAGGER}"
LEGEND = f"""{MARK} marks figures of which a seed or more was measured with earlier code or parameters. They are to be
measured again.
"""
Outdated = frozenset[tuple[str, str]]


def write_outdated(results: Path, rows: Iterable[tuple[str, str, int]]) -> None:
    """Write the data set, the system and the seed of each outdated result."""
    table = pd.DataFrame(sorted(rows), columns=SCHEMA.names)
    store.write_csv(results / FILE, table)


def read_outdated(results: Path) -> Outdated:
    """Return data set and system of each outdated result; none if nobody has looked."""
    path = results / FILE
    if not path.is_file():
        return frozenset()
    table = store.read_csv(path, SCHEMA)
    return frozenset(zip(table["data"], table["system"], strict=True))
