"""Paired differences: a table of the pairs that parameters ask for, and of any two systems on the command line."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from benchmark import places
from benchmark.systems import require, title
from mela.comparison import Measured, measured, read_results
from mela.errors import MelaError
from mela.params import read_yaml
from mela.published import SYSTEMS
from stages.run import run

HEADER = """## Two by two

The first system's accuracy less the second's, {shots}, paired by task and by seed, of the seeds that both have: means
with their 95% intervals over test tasks. In bold what holds for trainings anew: the interval over tasks and seeds
leaves out zero. It takes two seeds, and is wide with so few. *Published* are the differences of the paper's figures.

```sh
python -m benchmark.pairs mela-rfs-feat oracle-rfs-feat      # any two, seed by seed; names as in benchmark/params.yaml
```
"""
# whose published figures are shown, the first where both systems have some
PUBLISHED = {"cifar_fs": "CIFAR-FS", "fc100": "FC100", "mini": "miniImageNet", "tiered": "tieredImageNet"}

Questions = Mapping[str, Sequence[tuple[str, str]]]


def main(
    first: Annotated[str, typer.Argument(help="a system, such as mela-rfs-feat")],
    second: Annotated[str, typer.Argument(help="the one whose accuracy is taken off")],
    data: Annotated[
        list[str] | None, typer.Option(help="data sets; all of the parameters unless told otherwise")
    ] = None,
    params: Path = places.BENCHMARK / "params.yaml",
    results: Path = places.RESULTS,
) -> None:
    """Print how far two systems are apart on each data set, paired by task and by seed."""
    for system in (first, second):
        require(system)
    names = data or read_yaml(params)["data"]
    rows = [
        {
            "data": name,
            "setting": setting,
            "over tasks": cell(found),
            "over tasks and seeds": "" if found.anew is None else f"± {found.anew.ci95:.1f}",
            "of each seed": ", ".join(
                f"{seed}: {mean:+.1f}" for seed, mean in zip(found.seeds, found.accuracies.mean(axis=1), strict=True)
            ),
            "tasks": f"{found.accuracies.shape[1]:,}",
        }
        for name in names
        for setting, found in differences(read_results(results, name), first, second).items()
    ]
    if not rows:
        raise MelaError(
            f"{results}: expected {first} and {second} measured with one seed on {' or '.join(names)}, found none; "
            "run `make benchmark` first"
        )
    typer.echo(f"{title(first)} less {title(second)}, points of accuracy with 95% intervals")
    typer.echo(pd.DataFrame(rows).to_string(index=False))


def differences(accuracies: pd.DataFrame, first: str, second: str) -> dict[str, Measured]:
    """By how much a system is ahead of another one, in each setting that both are measured in with one seed.

    Parameters
    ----------
    accuracies : DataFrame
        Of `mela.comparison.read_results`.
    first, second : str
        Systems.
    """
    rows = accuracies[accuracies["system"].isin([first, second])]
    found = {}
    for setting in rows["setting"].unique():
        one, other = (measured(rows, system, setting) for system in (first, second))
        less = None if one is None or other is None else one.less(other)
        if less is not None:
            found[setting] = less
    return found


def read_questions(path: Path) -> dict[str, list[tuple[str, str]]]:
    """The pairs of systems that ``comparisons`` names under each question; none without that block.

    Raises
    ------
    MelaError
        Something else than two systems stands there.
    """
    asked: dict[str, Any] = read_yaml(path).get("comparisons") or {}
    found: dict[str, list[tuple[str, str]]] = {}
    for question, pairs in asked.items():
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2:
                raise MelaError(
                    f"{path}: comparisons: {question}: expected two systems, such as [mela-rfs, initial], got {pair}; "
                    "correct it"
                )
            first, second = map(str, pair)
            require(first)
            require(second)
            found.setdefault(str(question), []).append((first, second))
    return found


def two_by_two(
    accuracies: Mapping[str, pd.DataFrame], questions: Questions, shots: Sequence[int], systems: Iterable[str]
) -> list[str]:
    """Lines of the table with what goes before it; none where no pair is measured.

    Parameters
    ----------
    accuracies : mapping of str to DataFrame
        Of each data set, as `read_results` has them.
    questions : mapping of str to sequence of (first, second)
        What pairs of systems answer.
    shots : sequence of int
        Whose settings are shown.
    systems : iterable of str
        Those that there are; pairs of others are left out.
    """
    known = set(systems)
    lines = []
    for question, pairs in questions.items():
        rows = [row(accuracies, first, second, shots) for first, second in pairs if {first, second} <= known]
        if rows := [one for one in rows if one is not None]:
            lines += [f"| **{question}** |" + " |" * (len(accuracies) + 1), *rows]
    if not lines:
        return []
    columns = ["", *accuracies, "published"]
    header = HEADER.format(shots=" / ".join(f"{k}-shot" for k in shots))
    return [header, f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *lines, ""]


def row(accuracies: Mapping[str, pd.DataFrame], first: str, second: str, shots: Sequence[int]) -> str | None:
    """Differences of two systems on each data set; None if they are nowhere measured with one seed."""
    found = [differences(table, first, second) for table in accuracies.values()]
    if not any(found):
        return None
    settings = [f"{k}_shot" for k in shots]
    cells = [" / ".join(cell(one.get(setting), bold=True) for setting in settings) if one else "" for one in found]
    return f"| {title(first)} - {title(second)} | {' | '.join([*cells, published(first, second)])} |"


def cell(found: Measured | None, *, bold: bool = False) -> str:
    """A difference with its interval, in bold if that is asked for and it `holds_anew`."""
    if found is None:
        return "-"
    # adding nothing makes 0.0 of -0.0
    text = f"{round(found.interval.mean, 1) + 0.0:+.1f} ± {found.interval.ci95:.1f}"
    return f"**{text}**" if bold and holds_anew(found) else text


def holds_anew(found: Measured) -> bool:
    """Whether who is ahead is the same for trainings with other seeds, as far as the interval can tell."""
    return found.anew is not None and abs(found.anew.mean) > found.anew.ci95


def published(first: str, second: str) -> str:
    """The difference of two systems' published figures, if both have some for one data set."""
    one, other = SYSTEMS.get(first, {}), SYSTEMS.get(second, {})
    for data, name in PUBLISHED.items():
        if data in one and data in other:
            found = [round(a - b, 1) + 0.0 for a, b in zip(one[data], other[data], strict=True)]
            return f"*{' / '.join(f'{value:+.1f}' for value in found)}, {name}*"
    return ""


if __name__ == "__main__":
    run(main)
