"""Pages, tables and charts of all systems that are measured: docs/results/systems.md and docs/results/systems/."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from benchmark import places
from benchmark.comparison import read_heads, read_results, summarize_systems
from benchmark.matrix import PARAMS, Matrix
from benchmark.outdated_marks import LEGEND, MARK, read_outdated
from benchmark.report.charts import chart
from benchmark.report.data_page import REFERENCE, data_page, detailed
from benchmark.report.glance import at_a_glance, who_is_ahead
from benchmark.report.inferred import inferred_labels, read_scores
from benchmark.report.markdown import Notes
from benchmark.report.pairs import all_differences, two_by_two
from mela.errors import MelaError
from mela.evaluation.heads import HEADS
from mela.io import store
from mela.io.atomic import replacing, together
from mela.runtime.console import log
from stages.common.run import run

SHOTS = re.compile(r"(\d+)_shot")
HEADER = """# Systems side by side

All systems have the same network, learn from the same training tasks or their images, and meet the same test tasks.
[Methods](methods.md) describes the systems and their training, and [What the tables show](findings.md) explains the
results. **MeLa's labels are merged unless a row says Algorithm 2**, which is how the paper infers them.
"""
AHEAD = """## Who is ahead

The table names the best system of each kind: from the tasks alone, from MeLa's labels and from true labels. The highest
mean of many is in part luck. The last column says how far MeLa's labels are above the tasks alone, and bold differences
also hold for trainings with other seeds. Each data set has a page with all its systems.
"""
READING = """## How to read the tables

- Accuracies are in percent, and differences in points. Cells on this page have {shots}. Test tasks have
  5 classes with 15 queries each, unless the data comes as tasks.
- A number is a mean over all test tasks and {seeds} training seeds. Brackets give the number of seeds where it is
  lower. ± is the 95% interval over test tasks, which does not cover chance in training.
- Differences are paired by task and by seed. **Bold differences also hold for trainings with other seeds**: their
  interval over tasks and seeds leaves out zero. One seed cannot tell that, and few seeds tell it of large ones alone.
- A row that begins with + adds a method to plain pre-training on the labels in its heading, at the same time or
  afterwards. MeLa's labels are merged in such rows.
- In the charts, thick lines are intervals, thin lines go from the worst to the best seed, and the dotted line is MeLa
  (merged). The scale gives every halving of the errors the same room.
"""
GLANCE = """## At a glance

These systems are measured on every data set. The highest means without true labels are bold.
"""
PAIRS = """## Two by two

The table shows how far the first system is above the second, for pairs that every data set has or that have published
figures. Chance alone makes some of so many pairs bold. *Published* differences are of the paper's accuracies, from
other and larger networks. [differences.csv](systems/differences.csv) has the other pairs, the interval over tasks and
seeds, and the lowest and the highest seed. This command compares any two systems:

```sh
python -m benchmark.report.pairs merged-rfs-feat oracle-rfs-feat
```
"""
LABELS = """## Inferred labels

The table compares the labels of the training tasks with the true classes, from the lowest to the highest seed. Accuracy
is over the tasks that are clustered. Purity is the share of images whose class is the most frequent one of their label.
K-means ignores the tasks, and is told the number of classes. [labels.csv](systems/labels.csv) has each seed, and the
adjusted Rand index.
"""


@dataclass
class Written:
    """What is written, by path: texts of pages, tables, and charts with the rows that they show."""

    pages: dict[Path, str] = field(default_factory=dict)
    tables: dict[Path, pd.DataFrame] = field(default_factory=dict)
    charts: dict[Path, tuple[Figure, pd.DataFrame]] = field(default_factory=dict)


def main(lists: Path = PARAMS, results: Path = places.RESULTS, page: Path = Path("docs/results/systems.md")) -> None:
    """Read the accuracies of all systems; write means, intervals and differences as pages, tables and charts."""
    made = written(Matrix.read(lists), results, page)
    with together():
        for path, rows in made.tables.items():
            store.write_csv(path, rows)
        for path, (figure, rows) in made.charts.items():
            with replacing(path) as temporary:
                figure.savefig(temporary, format="png", dpi=110, metadata={"Description": fingerprint(rows)})
        for path, text in made.pages.items():
            store.write_text(path, text)
    rows = pd.concat(shown for _, shown in made.charts.values())
    log.info(f"tables: {page}, {rows['system'].nunique()} systems on {', '.join(rows['data'].unique())}")


def written(matrix: Matrix, results: Path, page: Path) -> Written:
    """Return the overview and what lies in the folder of its name, of each data set on which a system is measured.

    Raises
    ------
    MelaError
        There is none.
    """
    made, folder, systems = Written(), page.with_suffix(""), matrix.systems
    notes = Notes(len(matrix.seeds), frozenset(pair for pair in read_outdated(results) if pair[0] in matrix.data))
    accuracies, heads, summaries = {}, {}, []
    for data in matrix.data:
        own = read_results(results, data)
        settings = settings_of(setting for system, setting in own if system in systems)
        summary = summarize_systems(own, systems, settings, REFERENCE)
        if summary.empty:
            continue
        summary.insert(0, "data", data)
        names = {setting: setting.replace("_", "-") for setting in settings}
        made.charts[folder / f"{data}.png"] = chart(summary, names, REFERENCE), summary
        summaries.append(detailed(summary, results))
        of_data = data_page(summaries[-1], own, settings, systems, notes)
        made.pages[folder / f"{data}.md"] = "\n".join(of_data)
        accuracies[data], heads[data] = own, read_heads(results, data)
    if not summaries:
        raise MelaError(
            f"{results}: expected accuracies of some system on {', '.join(matrix.data)}, found none; run "
            "`make benchmark` first"
        )
    everything = pd.concat(summaries, ignore_index=True)
    settings = settings_of(everything["setting"])
    pairs = [pair for asked in matrix.comparisons.values() for pair in asked if {*pair} <= {*systems}]
    of_heads = pd.concat(heads, names=["data"]).query("system in @systems")
    made.tables = {
        folder / "accuracies.csv": everything,
        folder / "differences.csv": (differing := all_differences(accuracies, pairs, settings)),
        folder / "labels.csv": (scores := read_scores(results, matrix.data, matrix.inferred)),
        folder / "heads.csv": of_heads.pivot_table("mean", ["data", "system", "setting"], "head", sort=False)
        .reindex(columns=[*HEADS])
        .reset_index(),
    }
    shots = " / ".join(setting.replace("_", "-") for setting in settings)
    lines = [
        HEADER,
        *under(AHEAD, who_is_ahead(everything, accuracies, page.stem, notes)),
        READING.format(shots=shots, seeds=len(matrix.seeds)),
        *under(GLANCE, at_a_glance(everything, systems, settings, notes)),
        *under(PAIRS, two_by_two(differing, matrix.comparisons, settings, notes)),
        *under(LABELS, inferred_labels(scores)),
    ]
    marked = any(MARK in line for line in lines)
    made.pages[page] = "\n".join([*lines, LEGEND] if marked else lines)
    return made


def under(text: str, table: Iterable[str]) -> list[str]:
    """Return a table with what stands above it, or nothing where there is no row."""
    lines = [*table]
    return [text, *lines] if lines else []


def fingerprint(rows: pd.DataFrame) -> str:
    """Return by what a chart tells the figures that it was drawn from: the SHA-256 of what it shows of them."""
    return sha256(rows.round(1).to_csv(index=False).encode()).hexdigest()


def settings_of(found: Iterable[str]) -> list[str]:
    """Return the settings with images as they are, from the fewest support images."""
    return sorted({name for name in found if SHOTS.fullmatch(name)}, key=lambda name: int(name.partition("_")[0]))


if __name__ == "__main__":
    run(main)
