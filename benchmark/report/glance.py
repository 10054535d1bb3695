"""The data sets beside each other: the best system of each group, and the systems that are measured on all of them."""

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from benchmark.comparison import Results
from benchmark.report.markdown import NAMES, Notes, by_setting, difference, short, table
from benchmark.report.pairs import all_differences
from benchmark.systems import GROUPS, by_group, group, name_in_group

RIVALS = ("tasks", "mela", "oracle")
LOCAL = ("tasks", "mela", "kmeans")


def who_is_ahead(summary: pd.DataFrame, accuracies: Mapping[str, Results], folder: str, notes: Notes) -> Iterator[str]:
    """Yield the table of the best system of each group, and of how far MeLa's labels are ahead of the tasks alone.

    Parameters
    ----------
    summary : DataFrame
        Columns data, system, setting, mean, ci95 and seeds.
    accuracies : mapping of str to mapping
        Of each data set, as `read_results` has them.
    folder : str
        Where the page of a data set lies.
    notes : Notes
    """
    rows = []
    for key, own in summary.groupby(["data", "setting"], sort=False):
        data, setting = map(str, key)
        best = {group(row["system"]): row for row in own.sort_values("mean").to_dict("records")}
        names = {kind: row["system"] for kind, row in best.items()}
        cells = [
            f"{name_in_group(names[kind])} {short(best[kind])}{notes([best[kind]], data, names[kind])}"
            if kind in best
            else ""
            for kind in RIVALS
        ]
        pair = (names.get("mela", ""), names.get("tasks", ""))
        gaps = all_differences({data: accuracies[data]}, [pair], [setting]).to_dict("records")
        cells += [difference(gap) + notes([gap], data, *pair) for gap in gaps] or [""]
        rows.append([f"[{NAMES.get(data, data)}]({folder}/{data}.md), {setting.replace('_', '-')}", *cells])
    yield from table(["", *(GROUPS[kind] for kind in RIVALS), "MeLa's labels - the tasks alone"], rows)


def at_a_glance(summary: pd.DataFrame, systems: Sequence[str], settings: Sequence[str], notes: Notes) -> Iterator[str]:
    """Yield the table of the systems that all data sets have; nothing where there is one data set, or no such system.

    Parameters
    ----------
    summary, notes
        As for `who_is_ahead`.
    systems : sequence of str
        In the order of the rows.
    settings : sequence of str
        What a cell has, one after the other.
    """
    found = by_setting(summary, "data", "system")
    data = [*dict.fromkeys(summary["data"])]
    shown = [system for system in systems if all((one, system) in found for one in data)]
    if len(data) == 1 or not shown:
        return
    local = [system for system in shown if group(system) in LOCAL]
    best = summary[summary["system"].isin(local)].groupby(["data", "setting"])["mean"].max()

    def cell(name: str, system: str) -> str:
        known = found[name, system]
        texts = ["-"] * len(settings)
        for place, setting in enumerate(settings):
            if row := known.get(setting):
                is_best = system in local and f"{row['mean']:.1f}" == f"{best[name, setting]:.1f}"
                texts[place] = short(row, bold=is_best)
        return " / ".join(texts) + notes(known.values(), name, system)

    rows = []
    for heading, inside in by_group(shown):
        rows += [[heading], *([name_in_group(system), *(cell(name, system) for name in data)] for system in inside)]
    yield from table(["", *(NAMES.get(name, name) for name in data)], rows)
