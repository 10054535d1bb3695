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
from mela.published import PUBLISHED_SHOTS, SYSTEMS
from stages.run import run

HEADER = """## Two by two

The first system's accuracy less the second's, {shots}, paired by task and by seed, of the seeds that both have: means
with their 95% intervals over test tasks. In bold what holds for trainings anew: the interval over tasks and seeds
leaves out zero. It takes two seeds, and is wide with so few.{published}

```sh
python -m benchmark.pairs mela-rfs-feat oracle-rfs-feat   # any two of benchmark/params.yaml, seed by seed
```
"""
OF_THE_PAPER = " *Published* are the differences of the paper's figures."
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
    asked: Any = read_yaml(path).get("comparisons")
    if not isinstance(asked, dict | None):
        raise MelaError(f"{path}: comparisons: expected questions, each with pairs of systems, got {asked}; correct it")
    found: dict[str, list[tuple[str, str]]] = {}
    for question, pairs in (asked or {}).items():
        for pair in pairs if isinstance(pairs, list) else [pairs]:
            if not isinstance(pair, list) or len(pair) != 2:
                raise MelaError(
                    f"{path}: comparisons: {question}: expected pairs such as [mela-rfs, initial], got {pair}; correct "
                    "it"
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
    beside = tuple(shots) == PUBLISHED_SHOTS
    columns = ["", *accuracies, *(["published"] if beside else [])]
    lines = []
    for question, pairs in questions.items():
        rows = []
        for first, second in pairs:
            cells = row(accuracies, first, second, shots) if {first, second} <= known else []
            if any(cells):
                cells += [published(first, second)] if beside else []
                rows.append(f"| {title(first)} - {title(second)} | {' | '.join(cells)} |")
        if rows:
            lines += [f"| **{question}** |" + " |" * (len(columns) - 1), *rows]
    if not lines:
        return []
    header = HEADER.format(shots=" / ".join(f"{k}-shot" for k in shots), published=OF_THE_PAPER if beside else "")
    return [header, f"| {' | '.join(columns)} |", "|---" * len(columns) + "|", *lines, ""]


def row(accuracies: Mapping[str, pd.DataFrame], first: str, second: str, shots: Sequence[int]) -> list[str]:
    """Differences of two systems on each data set, empty where no seed has both."""
    settings = [f"{k}_shot" for k in shots]
    found = [differences(table, first, second) for table in accuracies.values()]
    cells = [" / ".join(cell(one.get(name), bold=True) for name in settings) if one else "" for one in found]
    # lines break between settings alone
    return [text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}") for text in cells]


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
