"""Write tables and charts of all measured systems: results/systems.csv and docs/results/systems.md."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from benchmark import places
from benchmark.comparison import Results, read_heads, read_results, seeds_of, summarize_systems
from benchmark.matrix import PARAMS, Matrix
from benchmark.outdated import LEGEND, MARK, Outdated, read_outdated
from benchmark.report.charts import chart
from benchmark.report.glance import at_a_glance
from benchmark.report.inferred import inferred_labels
from benchmark.report.pairs import signed, two_by_two
from benchmark.systems import by_group, has_published, published_figures, title
from mela.errors import MelaError
from mela.evaluation.heads import HEADS
from mela.io import store
from mela.io.atomic import replacing, together
from mela.runtime.console import log
from mela.runtime.usage import read_usage
from stages.common.run import run

REFERENCE = "merged-rfs"
SHOTS = re.compile(r"(\d+)_shot")
NOT_MEASURED = "not measured"
SPREAD = " ({}\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}{})"  # in one line of a cell
HEADER = """# Systems side by side

MeLa's labels are merged unless a row says otherwise: merging is this project's way to infer them. The paper prunes, by
Algorithm 2, and its published figures stand beside that row.

Made by `make tables` from the accuracies in `benchmark/results`; [Methods](methods.md) says what the systems are, and
how they were trained, [What the tables show](findings.md) what follows from it. Accuracy in percent on the frozen test
tasks of each data set (5 ways and 15 queries per class, but for data that comes as tasks, which have their own): mean
over seeds and tasks with its 95% interval over tasks, in brackets the means of the worst and the best seed. Then the
differences from MeLa with merged labels, paired by task and by seed, in brackets the lowest and the highest of a seed:
what chance in training makes of them, which the intervals do not cover. *Published* figures are those of the paper,
with other and larger networks, and do not compare with ours; what does is the order. Training is the wall time of a
system's last step, that before an interruption included; machines were busy with other work besides.

In the charts thick lines are the intervals, thin ones go from the worst to the best seed, and the dotted line is MeLa
with merged labels; the scale gives every halving of the errors the same room.
"""

CHART = "Test accuracies of all systems measured on {data}, the best on top; the same figures as in the table below"
HEADS_HEADER = """Other heads on the same features, {shots}, means over seeds and tasks. The transductive one
looks at all queries of a task together, and does not compare with the others.
"""


def main(
    lists: Path = PARAMS,
    results: Path = places.RESULTS,
    summary: Path = places.RESULTS / "systems.csv",
    page: Path = Path("docs/results/systems.md"),
) -> None:
    """Read the accuracies of all systems; write means, intervals and differences as a table, a page and charts."""
    text, parts = written(Matrix.read(lists), results, page)
    everything = pd.concat([one.table for one in parts], ignore_index=True)
    with together():
        store.write_csv(summary, everything)
        for one in parts:
            with replacing(one.picture) as temporary:
                one.figure.savefig(temporary, format="png", dpi=110, metadata={"Description": fingerprint(one.table)})
        with replacing(page) as temporary:
            temporary.write_text(text, encoding="utf-8")
    log.info(f"tables: {page}, {everything['system'].nunique()} systems on {', '.join(everything['data'].unique())}")


@dataclass(frozen=True, kw_only=True)
class Part:
    """Hold what the page says of a data set.

    Attributes
    ----------
    data : str
        Its name.
    accuracies : mapping of (system, setting) to DataFrame
        Result of `benchmark.comparison.read_results`.
    table : DataFrame
        Result of `benchmark.comparison.summarize_systems`, with the data set in front.
    lines : list of str
    figure : Figure
    picture : Path
        File of the figure, as the lines name it.
    """

    data: str
    accuracies: Results
    table: pd.DataFrame
    lines: list[str]
    figure: Figure
    picture: Path


def written(matrix: Matrix, results: Path, page: Path) -> tuple[str, list[Part]]:
    """Return the page's text, and its part for each data set on which a system is measured.

    Raises
    ------
    MelaError
        There is none.
    """
    systems = matrix.systems
    old = frozenset(pair for pair in read_outdated(results) if pair[0] in matrix.data)
    parts = [found for data in matrix.data if (found := part(data, systems, results, page, old)) is not None]
    if not parts:
        raise MelaError(
            f"{results}: expected accuracies of some system on {', '.join(matrix.data)}, found none; run "
            "`make benchmark` first"
        )
    everything = pd.concat([one.table for one in parts], ignore_index=True)
    shots = shots_of(everything["setting"])
    accuracies = {one.data: one.accuracies for one in parts}
    lines = [HEADER, *([LEGEND] if old else []), *at_a_glance(everything, shots, systems, old)]
    lines += two_by_two(accuracies, matrix.comparisons, shots, systems, old)
    lines += inferred_labels(results, matrix.data, matrix.inferred)
    lines += [line for one in parts for line in one.lines]
    return "\n".join(lines).rstrip() + "\n", parts


def part(data: str, systems: list[str], results: Path, page: Path, old: Outdated) -> Part | None:
    """Return the part of a data set; None if no system is measured on it."""
    accuracies = read_results(results, data)
    shots = shots_of(setting for system, setting in accuracies if system in systems)
    settings = {f"{k}_shot": f"{k}-shot" for k in shots}
    table = summarize_systems(accuracies, systems, [*settings], REFERENCE)
    if table.empty:
        return None
    table.insert(0, "data", data)
    picture = page.with_name(f"{page.stem}-{data}.png")
    lines = [f"## {data}", "", f"![{CHART.format(data=data)}]({picture.name})", ""]
    marks = {system: f" {MARK}" for one, system in old if one == data}
    lines += [*section(table, data, shots, systems, results, marks), ""]
    lines.append(HEADS_HEADER.format(shots=" / ".join(settings.values())))
    lines += [*heads_section(read_heads(results, data), shots, systems, marks), ""]
    figure = chart(table, settings, REFERENCE)
    return Part(data=data, accuracies=accuracies, table=table, lines=lines, figure=figure, picture=picture)


def fingerprint(table: pd.DataFrame) -> str:
    """Return the SHA-256 of the figures of a table that its chart shows, which the chart carries."""
    return sha256(table.round(1).to_csv(index=False).encode()).hexdigest()


def shots_of(settings: Iterable[str]) -> list[int]:
    """Return the numbers of support images that were measured, from the fewest."""
    return sorted({int(found[1]) for name in {*settings} if (found := SHOTS.fullmatch(name))})


def section(
    table: pd.DataFrame, data: str, shots: Sequence[int], systems: list[str], results: Path, marks: Mapping[str, str]
) -> list[str]:
    """Return the lines of a data set's table."""
    published = has_published(data, shots)
    names = [*(f"{k}-shot" for k in shots), *(f"{k}-shot - merged" for k in shots), "tasks", "seeds", "training"]
    names += ["published"] if published else []
    lines = [f"| system | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for heading, inside in by_group(systems):
        lines.append(f"| **{heading}** |" + " |" * len(names))
        for system in inside:
            found = table[table["system"] == system].set_index("setting").to_dict("index")
            cells = row(found, shots)
            if system == REFERENCE:
                cells[len(shots) : 2 * len(shots)] = [""] * len(shots)
            cells.append(training_time(results / data, system) if found else "")
            if published:
                figures = published_figures(system, data)
                cells.append(f"*{figures[0]} / {figures[1]}*" if figures else "")
            lines.append(f"| {title(system)}{marks.get(system, '')} | {' | '.join(cells)} |")
    return lines


def heads_section(heads: pd.DataFrame, shots: Sequence[int], systems: list[str], marks: Mapping[str, str]) -> list[str]:
    """Return the lines of a data set's table of heads: means over seeds, for each number of shots."""
    means = heads.groupby(["system", "head", "setting"])["mean"].mean()
    names = [*HEADS, "logistic, 5x support"]
    lines = [f"| features of | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for system in systems:
        if system not in means.index:
            continue
        found = [[means.get((system, name, f"{k}_shot")) for k in shots] for name in HEADS]
        found.append([means.get((system, "logistic", f"{k}_shot_5x")) for k in shots])
        cells = [" / ".join("-" if mean is None else f"{mean:.1f}" for mean in of_a_head) for of_a_head in found]
        lines.append(f"| {title(system)}{marks.get(system, '')} | {' | '.join(cells)} |")
    return lines


def row(found: Mapping[Any, Mapping[Any, Any]], shots: Sequence[int]) -> list[str]:
    """Return accuracies, differences, tasks and seeds of a system, or that it is not measured."""
    if not found:
        return [*[NOT_MEASURED] * len(shots), *[""] * (len(shots) + 2)]
    settings = [found.get(f"{k}_shot") for k in shots]
    cells = ["-" if one is None else accuracy(one) for one in settings]
    cells += ["" if one is None else difference(one) for one in settings]
    for name in ("tasks", "seeds"):
        counts = [one[name] for one in settings if one is not None]
        cells.append(" / ".join(f"{count:,}" for count in (counts if len(set(counts)) > 1 else counts[:1])))
    return cells


def accuracy(one: Mapping[Any, Any]) -> str:
    """Format a mean with its interval, and the worst and the best seed if there are several."""
    spread = SPREAD.format(f"{one['worst_seed']:.1f}", f"{one['best_seed']:.1f}") if one["seeds"] > 1 else ""
    return f"{one['mean']:.1f} ± {one['ci95']:.1f}{spread}"


def difference(one: Mapping[Any, Any]) -> str:
    """Format the difference from the reference, if measured, and the lowest and highest seed if there are several."""
    if not np.isfinite(one["difference"]):
        return ""
    low, high = one["difference_lowest_seed"], one["difference_highest_seed"]
    spread = SPREAD.format(signed(low), signed(high)) if low < high else ""
    return f"{signed(one['difference'])} ± {one['difference_ci95']:.1f}{spread}"


def training_time(folder: Path, system: str) -> str:
    """Return the mean time of the last step of training over seeds."""
    paths = [path for one in seeds_of(folder).values() if (path := one / f"{system}.json").exists()]
    seconds = [read_usage(path).seconds for path in paths]
    return f"{sum(seconds) / len(seconds):.0f} s" if seconds else ""


if __name__ == "__main__":
    run(main)
