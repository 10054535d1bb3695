"""Show paired differences: a table of the pairs in the parameters, and any two systems on the command line."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from benchmark import places
from benchmark.comparison import Measured, Results, measured, read_results, seeds_by_system
from benchmark.matrix import PARAMS, Matrix
from benchmark.outdated import MARK, Outdated
from benchmark.systems import has_published, require, title
from mela.errors import MelaError
from mela.reporting.published import SYSTEMS
from stages.common.run import run

HEADER = """## Two by two

The first system's accuracy less the second's, {shots}, paired by task and by seed: means with their 95% intervals over
test tasks, and in brackets the number of seeds, those that both have. In bold what holds for trainings anew, with other
seeds on the same training tasks: the interval over tasks and seeds leaves out zero, which one seed cannot tell, and few
tell for large differences alone. No interval makes up for the number of pairs, of which chance lets some appear in
bold.{published}

```sh
python -m benchmark.report.pairs merged-rfs-feat oracle-rfs-feat   # any two of benchmark/params.yaml, seed by seed
```
"""
OF_THE_PAPER = " *Published* are the differences of the paper's figures."
# whose published figures are shown, the first where both systems have some
PUBLISHED = {"cifar_fs": "CIFAR-FS", "fc100": "FC100", "mini": "miniImageNet", "tiered": "tieredImageNet"}

Questions = Mapping[str, Sequence[tuple[str, str]]]


def main(
    first: Annotated[str, typer.Argument(help="a system, such as merged-rfs-feat")],
    second: Annotated[str, typer.Argument(help="the one whose accuracy is taken off")],
    data: Annotated[
        list[str] | None, typer.Option(help="data sets; all of the parameters unless told otherwise")
    ] = None,
    lists: Path = PARAMS,
    results: Path = places.RESULTS,
) -> None:
    """Print how far two systems are apart on each data set, paired by task and by seed."""
    for system in (first, second):
        require(system)
    folders = {path.name for path in results.glob("*/") if path.is_dir()}
    matrix = Matrix.read(lists)
    asked = matrix.data
    for name in data or []:
        if name not in folders.union(asked):
            raise MelaError(f"--data {name}: expected one of {', '.join(sorted(folders.union(asked)))}; correct it")
    accuracies = {name: read_results(results, name) for name in data or asked}
    rows = [
        {
            "data": name,
            "setting": setting,
            "over tasks": cell(found),
            "over tasks and seeds": "" if found.anew is None else f"± {found.anew.ci95:.1f}",
            "of each seed": ", ".join(
                f"{seed}: {signed(mean)}" for seed, mean in zip(found.seeds, found.accuracies.mean(axis=1), strict=True)
            ),
            "tasks": f"{found.accuracies.shape[1]:,}",
        }
        for name, results_of in accuracies.items()
        for setting, found in differences(results_of, first, second).items()
    ]
    if not rows:
        seeds = {name: seeds_by_system(found) for name, found in accuracies.items()}
        for system in (first, second):
            if system not in matrix.systems and not any(system in known for known in seeds.values()):
                raise MelaError(
                    f"{lists}: expected lists that make {system}, which is not measured on {', '.join(accuracies)}; "
                    f"add what is missing to {matrix.lists_of(system)}, or name another system"
                )
        known = "; ".join(
            f"{name}, {system}: {', '.join(map(str, sorted(of_data.get(system, ())))) or 'none'}"
            for name, of_data in seeds.items()
            for system in (first, second)
        )
        raise MelaError(
            f"{results}: expected {first} and {second} measured with a seed in common, got the seeds {known}; run "
            "`make benchmark`"
        )
    typer.echo(f"{title(first)} less {title(second)}, points of accuracy with 95% intervals")
    typer.echo(pd.DataFrame(rows).to_string(index=False))


def differences(accuracies: Results, first: str, second: str) -> dict[str, Measured]:
    """Return by how much a system is ahead of another one, in each setting, over the seeds of both.

    Parameters
    ----------
    accuracies : mapping of (system, setting) to DataFrame
        Result of `benchmark.comparison.read_results`.
    first, second : str
        Systems.
    """
    found = {}
    for setting in [setting for system, setting in accuracies if system == first]:
        one, other = (measured(accuracies, system, setting) for system in (first, second))
        less = None if one is None or other is None else one.less(other)
        if less is not None:
            found[setting] = less
    return found


def two_by_two(
    accuracies: Mapping[str, Results],
    questions: Questions,
    shots: Sequence[int],
    systems: Iterable[str],
    old: Outdated = frozenset(),
) -> list[str]:
    """Return the lines of the table and its introduction; none if no pair is measured.

    Parameters
    ----------
    accuracies : mapping of str to mapping
        Result of `read_results` for each data set.
    questions : mapping of str to sequence of (first, second)
        What pairs of systems answer.
    shots : sequence of int
        Numbers of shots to show.
    systems : iterable of str
        Those that there are; pairs of others are left out.
    old : set of (data, system)
        Results to mark as outdated.
    """
    known = set(systems)
    beside = any(has_published(name, shots) for name in accuracies)
    columns = ["", *accuracies, *(["published"] if beside else [])]
    lines = []
    for question, pairs in questions.items():
        rows = []
        for first, second in pairs:
            cells = row(accuracies, first, second, shots) if {first, second} <= known else []
            if any(cells):
                marks = [MARK if {(one, first), (one, second)} & old else "" for one in accuracies]
                cells = [text and text + mark for text, mark in zip(cells, marks, strict=True)]
                cells += [published(first, second)] if beside else []
                rows.append(f"| {title(first)} - {title(second)} | {' | '.join(cells)} |")
        if rows:
            lines += [f"| **{question}** |" + " |" * (len(columns) - 1), *rows]
    if not lines:
        return []
    header = HEADER.format(shots=" / ".join(f"{k}-shot" for k in shots), published=OF_THE_PAPER if beside else "")
    return [header, f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *lines, ""]


def row(accuracies: Mapping[str, Results], first: str, second: str, shots: Sequence[int]) -> list[str]:
    """Return two systems' differences on each data set with the number of seeds, empty if no seed has both."""
    settings = [f"{k}_shot" for k in shots]
    found = [differences(table, first, second) for table in accuracies.values()]
    cells = []
    for one in found:
        text = " / ".join(cell(one.get(name), bold=True) for name in settings)
        seeds = sorted({len(each.seeds) for each in one.values()})
        # lines break between settings, and before the number of seeds
        text = text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")
        cells.append(f"{text} ({' / '.join(map(str, seeds))})" if one else "")
    return cells


def cell(found: Measured | None, *, bold: bool = False) -> str:
    """Format a difference with its interval, in bold if that is asked for and it `holds_anew`."""
    if found is None:
        return "-"
    text = f"{found.interval:+z.1f}"
    return f"**{text}**" if bold and holds_anew(found) else text


def signed(value: float) -> str:
    """Format a value with sign and one digit; every rounded zero is +0.0."""
    return f"{round(value, 1) + 0.0:+.1f}"


def holds_anew(found: Measured) -> bool:
    """Tell whether the same system is ahead for trainings with other seeds, as far as the interval can tell."""
    return found.anew is not None and abs(found.anew.mean) > found.anew.ci95


def published(first: str, second: str) -> str:
    """Format the difference of two systems' published figures, if both have some for one data set."""
    one, other = SYSTEMS.get(first, {}), SYSTEMS.get(second, {})
    for data, name in PUBLISHED.items():
        if data in one and data in other:
            return f"*{' / '.join(signed(a - b) for a, b in zip(one[data], other[data], strict=True))}, {name}*"
    return ""


if __name__ == "__main__":
    run(main)
