"""Tables in Markdown, and how their cells write what was measured."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from benchmark.outdated_marks import MARK, Outdated
from mela.evaluation.intervals import Interval

# what prose calls a data set, where that is not the name of its file
NAMES = {
    "omniglot": "Omniglot",
    "cifar_fs": "CIFAR-FS",
    "fc100": "FC100",
    "mini_imagenet": "miniImageNet",
    "tiered_imagenet": "tieredImageNet",
    "metadataset": "MetaDataset",
}

Row = Mapping[Any, Any]


def by_setting(frame: pd.DataFrame, *keys: str) -> dict[tuple[str, ...], dict[str, Row]]:
    """Return the rows of each combination of keys, by their settings."""
    found: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in frame.to_dict("records"):
        found.setdefault(tuple(row[key] for key in keys), {})[row["setting"]] = row
    return found


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; a row of one cell is a heading inside it."""
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    for cells in rows:
        yield f"| {' | '.join(cells)} |" if len(cells) > 1 else f"| **{cells[0]}** |" + " |" * (len(header) - 1)
    yield ""


def short(row: Row, form: str = ".1f", *, bold: bool = False) -> str:
    """Write a mean and its interval without spaces."""
    text = f"{Interval(row['mean'], row['ci95']):{form}}".replace(" ", "")
    return f"**{text}**" if bold else text


def difference(row: Row) -> str:
    """Write a difference with its interval, in bold where it holds for trainings with other seeds."""
    return short(row, "+z.1f", bold=abs(row["mean"]) > row["ci95_anew"])


@dataclass(frozen=True)
class Notes:
    """What stands behind a figure.

    Attributes
    ----------
    usual : int
        The number of seeds that needs no note.
    old : set of (data, system)
        Whose figures are of earlier code.
    """

    usual: int
    old: Outdated = frozenset()

    def __call__(self, rows: Iterable[Row], data: str, *systems: str) -> str:
        """Return the number of seeds in brackets where it is lower than usual, and the mark of earlier code."""
        seeds = min(row["seeds"] for row in rows)
        old = any((data, system) in self.old for system in systems)
        return (f" ({seeds})" if seeds < self.usual else "") + (MARK if old else "")
