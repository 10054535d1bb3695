"""Paired differences: a table of the pairs that parameters ask for, and of any two systems on the command line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from benchmark import places
from benchmark.comparison import Measured, Results, measured, read_results, seeds_by_system
from benchmark.matrix import PARAMS, Matrix
from benchmark.report.markdown import NAMES, Notes, by_setting, difference, table
from benchmark.systems import has_published, require, title
from mela.errors import MelaError
from mela.reporting.published import SYSTEMS
from stages.common.run import run

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
            "over tasks": f"{found.interval:+z.1f}",
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
    """Return by how much a system is ahead of another one, in each setting, over the seeds that both are measured with.

    Parameters
    ----------
    accuracies : mapping of (system, setting) to DataFrame
        Of `benchmark.comparison.read_results`.
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


def all_differences(
    accuracies: Mapping[str, Results], pairs: Iterable[tuple[str, str]], settings: Sequence[str]
) -> pd.DataFrame:
    """Return a row for each pair of systems, data set and setting in which both are measured.

    Parameters
    ----------
    accuracies : mapping of str to mapping
        Of each data set, as `read_results` has them.
    pairs : iterable of (first, second)
        Systems.
    settings : sequence of str

    Returns
    -------
    DataFrame with columns first, second, data, setting, seeds, tasks, mean, ci95, ci95_anew, lowest_seed, highest_seed
    """
    rows = [
        (
            *(first, second, data, setting, *found.accuracies.shape, found.interval.mean, found.interval.ci95),
            *(np.nan if found.anew is None else found.anew.ci95, *found.range),
        )
        for first, second in pairs
        for data, own in accuracies.items()
        for setting, found in differences(own, first, second).items()
        if setting in settings
    ]
    names = ("first", "second", "data", "setting", "seeds", "tasks", "mean", "ci95", "ci95_anew")
    return pd.DataFrame(rows, columns=[*names, "lowest_seed", "highest_seed"])


def two_by_two(differing: pd.DataFrame, questions: Questions, settings: Sequence[str], notes: Notes) -> Iterator[str]:
    """Yield the table of pairs under their questions; nothing where no pair is measured.

    Parameters
    ----------
    differing : DataFrame
        Of `all_differences`.
    questions : mapping of str to sequence of (first, second)
        What pairs of systems answer; pairs that lack a data set are left out, unless a difference is published.
    settings : sequence of str
        What a cell has, one after the other.
    notes : Notes
    """
    found = by_setting(differing, "first", "second", "data")
    data = [*dict.fromkeys(differing["data"])]
    beside = any(has_published(name, settings) for name in data)

    def cell(first: str, second: str, name: str) -> str:
        rows = found.get((first, second, name))
        if rows is None:
            return ""
        texts = [difference(rows[setting]) if setting in rows else "-" for setting in settings]
        return " / ".join(texts) + notes(rows.values(), name, first, second)

    rows = []
    for question, pairs in questions.items():
        inside = [
            [versus(*pair), *(cell(*pair, name) for name in data), *([published(*pair)] if beside else [])]
            for pair in pairs
            if any(has := [(*pair, name) in found for name in data])
            if all(has) or (beside and published(*pair))
        ]
        rows += [[question], *inside] if inside else []
    if rows:
        yield from table(["", *(NAMES.get(name, name) for name in data), *(["published"] if beside else [])], rows)


def versus(first: str, second: str) -> str:
    """Return the titles of two systems, with what both have at the end said once."""
    (one, *more), (other, *others) = (title(system).split(" + ") for system in (first, second))
    if more and more == others:
        return f"{one} - {other}, both + {' + '.join(more)}"
    return f"{title(first)} - {title(second)}"


def signed(value: float) -> str:
    """Return a difference with one digit; none is +0.0, from wherever it was rounded."""
    return f"{round(value, 1) + 0.0:+.1f}"


def holds_anew(found: Measured) -> bool:
    """Whether who is ahead is the same for trainings with other seeds, as far as the interval can tell."""
    return found.anew is not None and abs(found.anew.mean) > found.anew.ci95


def published(first: str, second: str) -> str:
    """Return the difference of two systems' published figures, if both have some for one data set."""
    one, other = SYSTEMS.get(first, {}), SYSTEMS.get(second, {})
    for data, name in NAMES.items():
        if data in one and data in other:
            return f"*{' / '.join(signed(a - b) for a, b in zip(one[data], other[data], strict=True))}, {name}*"
    return ""


if __name__ == "__main__":
    run(main)
