"""Compare the data sets in one table of the systems that are measured on several of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from benchmark.outdated import MARK, Outdated
from benchmark.systems import GROUPS, by_group, group, title

LEAST = 2
HEADER = """## At a glance

Systems that are measured on two data sets or more: means with their 95% intervals over test tasks, in bold the highest
means on local labels, and the number of seeds on each. Tables of each data set follow, with differences from MeLa, of
the seeds that both have, and what chance in training makes of them.
"""


def at_a_glance(
    table: pd.DataFrame, shots: Sequence[int], systems: Sequence[str], old: Outdated = frozenset()
) -> list[str]:
    """Return the lines of the table and its introduction; none if no system is measured on several data sets.

    Parameters
    ----------
    table : DataFrame
        Columns data, system, setting, mean, ci95 and seeds.
    shots : sequence of int
        Numbers of shots to show.
    systems : sequence of str
        Systems in the order of the rows.
    old : set of (data, system)
        Results to mark as outdated.
    """
    counts = table.groupby("system")["data"].nunique()
    shown = [system for system in systems if counts.get(system, 0) >= LEAST]
    if not shown:
        return []
    table = table[table["system"].isin(shown)]
    data = [*dict.fromkeys(table["data"])]
    columns = {(one, f"{k}_shot"): f"{one} {k}-shot" for one in data for k in shots}
    local = [system for system in shown if group(system) == GROUPS["tasks"]]
    of_local = table[table["system"].isin(local)]
    best = of_local.groupby(["data", "setting"])["mean"].max().to_dict()
    found = table.set_index(["system", "data", "setting"])[["mean", "ci95", "seeds"]].to_dict("index")
    lines = [HEADER, f"| | {' | '.join(columns.values())} | seeds |", "|---" * (len(columns) + 2) + "|"]
    for heading, inside in by_group(shown):
        lines.append(f"| **{heading}** |" + " |" * (len(columns) + 1))
        for system in inside:
            rows = {column: found.get((system, *column)) for column in columns}
            cells = [
                _cell(row, best.get(column) if system in local else None)
                + (MARK if row and (column[0], system) in old else "")
                for column, row in rows.items()
            ]
            seeds = {one: row["seeds"] for (one, _), row in rows.items() if row is not None}
            cells.append(", ".join(str(seeds.get(one, "-")) for one in data))
            lines.append(f"| {title(system)} | {' | '.join(cells)} |")
    return [*lines, ""]


def _cell(row: Mapping[Any, Any] | None, best: float | None) -> str:
    """Format a mean and its interval, in bold if the mean is the best as shown."""
    if row is None:
        return ""
    text = f"{row['mean']:.1f} ± {row['ci95']:.1f}"
    return f"**{text}**" if best is not None and f"{best:.1f}" == f"{row['mean']:.1f}" else text
