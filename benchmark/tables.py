"""The tables of the benchmark, of all systems that are measured: results/systems.csv and docs/systems.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark import places
from benchmark.systems import GROUPS, group, require, title
from mela import store
from mela.atomic import replacing
from mela.comparison import read_heads, read_results, summarize_systems
from mela.heads import HEADS
from mela.output import log
from mela.params import read_yaml
from mela.published import SYSTEMS
from mela.usage import read_usage
from stages.run import run

SETTINGS = {"1_shot": 0, "5_shot": 1}
REFERENCE = "mela-rfs"
NOT_MEASURED = "not measured"
HEADER = """# Systems side by side

Made by `make tables` from the accuracies in `benchmark/results`; [Methods](methods.md) says what the systems are, and
how they were trained. 5-way accuracy in percent on the frozen test tasks of each data set, 15 queries per class: mean
over seeds and tasks with its 95% interval over tasks, in brackets the means of the worst and the best seed. Then the
paired differences from MeLa on the same tasks. *Published* figures are those of the paper, with other and larger
networks, and do not compare with ours; what does is the order. Training is the time of a system's last step alone.
"""

HEADS_HEADER = """Other heads on the same features, 1-shot / 5-shot, means over seeds and tasks. The transductive one
looks at all queries of a task together, and does not compare with the others.
"""


def main(
    params: Path = places.BENCHMARK / "params.yaml",
    results: Path = places.RESULTS,
    summary: Path = places.RESULTS / "systems.csv",
    page: Path = Path("docs/systems.md"),
) -> None:
    """Read the accuracies of all systems; write their means, intervals and differences as a table and a page."""
    matrix = read_yaml(params)
    for system in matrix["systems"]:
        require(system)
    parts, lines = [], [HEADER]
    for data in matrix["data"]:
        accuracies = read_results(results, data)
        table = summarize_systems(accuracies, matrix["systems"], [*SETTINGS], REFERENCE)
        if table.empty:
            continue
        parts.append(table.assign(data=data))
        lines += [f"## {data}", "", *section(table, data, matrix["systems"], results), ""]
        lines += [HEADS_HEADER, *heads_section(read_heads(results, data), matrix["systems"]), ""]
    everything = pd.concat(parts, ignore_index=True)
    store.write_csv(summary, everything[["data", *(name for name in everything if name != "data")]])
    with replacing(page) as temporary:
        temporary.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    log.info(f"tables: {page}, {everything['system'].nunique()} systems on {everything['data'].nunique()} data sets")


def section(table: pd.DataFrame, data: str, systems: list[str], results: Path) -> list[str]:
    """Lines of a data set's table."""
    published = any(data in figures for figures in SYSTEMS.values())
    names = ["1-shot", "5-shot", "1-shot - MeLa", "5-shot - MeLa", "tasks", "seeds", "training"]
    names += ["published"] if published else []
    lines = [f"| system | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for heading in GROUPS.values():
        inside = [system for system in systems if group(system) == heading]
        if inside:
            lines.append(f"| **{heading}** |" + " |" * len(names))
        for system in inside:
            found = table[table["system"] == system].set_index("setting").to_dict("index")
            cells = row(found)
            if system == REFERENCE:
                cells[2:4] = ["", ""]
            cells.append(training_time(results / data, system) if found else "")
            if published:
                figures = SYSTEMS.get(system, {}).get(data)
                cells.append(f"*{figures[0]} / {figures[1]}*" if figures else "")
            lines.append(f"| {title(system)} | {' | '.join(cells)} |")
    return lines


def heads_section(heads: pd.DataFrame, systems: list[str]) -> list[str]:
    """Lines of a data set's table of heads: 1-shot / 5-shot means over seeds."""
    means = heads.groupby(["system", "head", "setting"])["mean"].mean()
    names = [*HEADS, "logistic, 5x support"]
    lines = [f"| features of | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for system in systems:
        if system not in means.index:
            continue
        pairs = [[means.get((system, name, setting)) for setting in SETTINGS] for name in HEADS]
        pairs.append([means.get((system, "logistic", f"{setting}_5x")) for setting in SETTINGS])
        cells = [" / ".join("-" if mean is None else f"{mean:.1f}" for mean in pair) for pair in pairs]
        lines.append(f"| {title(system)} | {' | '.join(cells)} |")
    return lines


def row(found: Mapping[Any, Mapping[Any, Any]]) -> list[str]:
    """Accuracies, differences, tasks and seeds of a system, or that it is not measured."""
    if not found:
        return [NOT_MEASURED, NOT_MEASURED, *[""] * 4]
    cells = []
    for setting in SETTINGS:
        one = found[setting]
        spread = f" ({one['worst_seed']:.1f} to {one['best_seed']:.1f})" if one["seeds"] > 1 else ""
        cells.append(f"{one['mean']:.1f} ± {one['ci95']:.1f}{spread}")
    for setting in SETTINGS:
        difference = found[setting]
        cells.append(f"{difference['difference']:+.1f} ± {difference['difference_ci95']:.1f}")
    any_one = next(iter(found.values()))
    return [*cells, f"{any_one['tasks']:,}", str(any_one["seeds"])]


def training_time(folder: Path, system: str) -> str:
    """Mean time of the last step of training over seeds."""
    seconds = [read_usage(path).seconds for path in sorted(folder.glob(f"seed*/{system}.json"))]
    return f"{sum(seconds) / len(seconds):.0f} s" if seconds else ""


if __name__ == "__main__":
    run(main)
