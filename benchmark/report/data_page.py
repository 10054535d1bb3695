"""The page of a data set: a row for each system that is measured on it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmark.comparison import Results, seeds_of
from benchmark.outdated_marks import LEGEND
from benchmark.report.markdown import NAMES, Notes, by_setting, difference, short, table
from benchmark.report.pairs import all_differences
from benchmark.systems import DISTILL, by_group, group, name_in_group, published_figures, uses
from mela.reporting.published import PUBLISHED_SHOTS
from mela.runtime.usage import read_usage

REFERENCE = "merged-rfs"
HEADER = """# Systems on {name}

Accuracies are in percent on {tasks} test tasks, and differences from MeLa (merged) in points. The overview says [how to
read the table](../systems.md#how-to-read-the-tables). Seconds are the wall time of the last training, on machines that
did other work besides. {measured} of {systems} systems are measured here.

![Test accuracies of all systems that are measured on {name}, the best on top]({data}.png)
"""
FOOTER = """\
[accuracies.csv](accuracies.csv) also has the worst and the best seed, the paper's accuracies and the cell of each row.
[heads.csv](heads.csv) has [other heads](../methods.md#heads) on the same features. A command such as this one measures
the cell of a row with one seed:

```sh
dvc --cd benchmark repro {cell}-0
```
"""


def data_page(
    own: pd.DataFrame, accuracies: Results, settings: Sequence[str], systems: Sequence[str], notes: Notes
) -> Iterator[str]:
    """Yield the lines of the page of a data set.

    Parameters
    ----------
    own : DataFrame
        The rows of the data set in `detailed`.
    accuracies : mapping of (system, setting) to DataFrame
        Of `benchmark.comparison.read_results`.
    settings : sequence of str
        That have columns.
    systems : sequence of str
        All that there are, measured or not.
    notes : Notes
    """
    data = own["data"].iloc[0]
    found = {system: rows for (system,), rows in by_setting(own, "system").items()}
    pairs = [(system, REFERENCE) for system in found if system != REFERENCE]
    gaps = by_setting(all_differences({data: accuracies}, pairs, settings), "first")
    counts = {"tasks": " to ".join(dict.fromkeys(f"{own['tasks'].agg(end):,}" for end in ("min", "max")))}
    counts |= {"measured": str(len(found)), "systems": str(len(systems))}
    yield HEADER.format(name=NAMES.get(data, data), data=data, **counts)

    names = [setting.replace("_", "-") for setting in settings]
    rows = []
    for heading, inside in by_group([system for system in systems if system in found]):
        rows.append([heading])
        for system in sorted(inside, key=lambda name: -found[name].get(settings[0], {"mean": 0})["mean"]):
            known, gap = found[system], gaps.get((system,), {})
            cells = [name_in_group(system) + notes(known.values(), data, system)]
            cells += [short(known[setting]) if setting in known else "-" for setting in settings]
            cells += [difference(gap[setting]) if setting in gap else "" for setting in settings]
            seconds = next(iter(known.values()))["seconds"]
            rows.append([*cells, f"{seconds:.0f}" if seconds > 0 else ""])
    yield from table(["", *names, *(f"{name} - MeLa" for name in names), "seconds"], rows)
    if any(data == one for one, _ in notes.old):
        yield LEGEND
    yield FOOTER.format(cell=cell_of(next(iter(found)), data))


def detailed(summary: pd.DataFrame, results: Path) -> pd.DataFrame:
    """Return the rows of `benchmark.comparison.summarize_systems` with what else is known of them.

    Columns that are added are seconds, the mean wall time of the last training over seeds; published, the paper's
    accuracy, from whatever network; and cell, the stage of ``benchmark/dvc.yaml`` that measures the system.
    """
    keys = [*zip(summary["data"], summary["system"], summary["setting"], strict=True)]
    shots = [f"{k}_shot" for k in PUBLISHED_SHOTS]
    published = [dict(zip(shots, published_figures(system, data) or (), strict=False)) for data, system, _ in keys]
    return summary.assign(
        seconds=[training_time(results / data, system) for data, system, _ in keys],
        published=[figures.get(setting, np.nan) for figures, (_, _, setting) in zip(published, keys, strict=True)],
        cell=[cell_of(system, data) for data, system, _ in keys],
    )


def training_time(folder: Path, system: str) -> float:
    """Return the mean seconds of the last training over seeds; NaN where nobody knows them."""
    paths = [path for one in seeds_of(folder).values() if (path := one / f"{system}.json").exists()]
    known = [read_usage(path).seconds for path in paths]
    return sum(known) / len(known) if known else np.nan


def cell_of(system: str, data: str) -> str:
    """Return the stage of ``benchmark/dvc.yaml`` that measures a system, without the seed at its end."""
    start, _, last = system.rpartition("-")
    labels = uses(system)
    if labels is None:
        names = {"tasks": "tasks", "images": "unlabeled"}
        stage, parts = ("initial", []) if system == "initial" else (names[group(system)], [system])
    elif group(system) == "mela" and labels != "merged":
        stage, parts = "pruned", [labels]
    elif last == DISTILL:
        stage, parts = "distill", [start.removeprefix(f"{labels}-"), labels]
    else:
        stage, parts = ("labels" if start == labels else "tuned"), [last, start]
    return f"test_{stage}@{'-'.join([*parts, data])}"
