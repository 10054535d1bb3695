"""Find each method's best learning rate on each data set by validation tasks, in the same grid for all methods.

``python -m studies training.rate_search`` reads studies/results/method_rates.csv and says which rate is best and which
rows are missing. With ``--run`` it measures these, one training after the other, and goes on where it stopped. With
``--write`` it puts the rates into benchmark/data/*.yaml.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from benchmark import places
from benchmark.matrix import Matrix
from mela.errors import MelaError
from mela.io.store import write_text
from mela.methods import find_method
from mela.params import RatesParams
from studies.grid import program
from studies.training.method_rates import NOTHING, own_head

TABLE = Path("studies/results/method_rates.csv")
# of Adam, for every method
GRID = (0.0003, 0.001, 0.003)
# what the grid is continued with, about a factor of three apart
LADDER = tuple(float(f"{digit}e{power}") for power in range(-7, 1) for digit in (1, 3))


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Hold what a table says of one method on one data set.

    Attributes
    ----------
    rate : float, optional
        The best rate; None where the table lacks a part of the grid.
    accuracies : dict of float to tuple
        1-shot and 5-shot accuracy in percent at every rate that counts, NaN where training diverged.
    missing : list of float
        Rates that the table lacks: of the grid, or the next one where the best is at an end of those that were tried.
    """

    rate: float | None
    accuracies: Mapping[float, tuple[float, float]]
    missing: list[float]


def choose(accuracies: Mapping[float, tuple[float, float]]) -> Choice:
    """Return the rate with the highest mean of 1-shot and 5-shot accuracy.

    All of `GRID` counts, and as many rates of `LADDER` beyond it as it takes until the best has a neighbour on both
    sides. Of equal rates it is the lowest; a rate at which training diverged is worse than any other.

    Parameters
    ----------
    accuracies : mapping of float to tuple
        1-shot and 5-shot accuracy by rate.
    """
    if missing := [rate for rate in GRID if rate not in accuracies]:
        known = {rate: accuracies[rate] for rate in GRID if rate in accuracies}
        return Choice(rate=None, accuracies=known, missing=missing)

    def quality(place: int) -> float:
        mean = float(np.mean(accuracies[LADDER[place]]))
        return -math.inf if math.isnan(mean) else mean

    low, high = LADDER.index(GRID[0]), LADDER.index(GRID[-1])
    while True:
        best = max(range(low, high + 1), key=quality)
        beyond = max(low - 1, 0) if best == low else min(high + 1, len(LADDER) - 1) if best == high else best
        missing = [LADDER[beyond]] if LADDER[beyond] not in accuracies else []
        if missing or low <= beyond <= high:
            tried = {rate: accuracies[rate] for rate in LADDER[low : high + 1]}
            return Choice(rate=LADDER[best], accuracies=tried, missing=missing)
        low, high = min(low, beyond), max(high, beyond)


def measured(table: pd.DataFrame, data: str, method: str) -> dict[float, tuple[float, float]]:
    """Return the accuracies of a method trained from scratch by Adam with its own head, by rate."""
    own = {"data": data, "method": method, "start": NOTHING, "longer": 1, "optimizer": "adam"}
    own |= own_head(method)._asdict()
    rows = table[(table[[*own]] == pd.Series(own)).all(axis=1)]
    return {float(f"{row.rate:.3g}"): (row[-2], row[-1]) for row in rows[["rate", "1_shot", "5_shot"]].itertuples()}


def read_table(path: Path = TABLE) -> pd.DataFrame:
    """Return the rows of ``python -m studies training.method_rates``.

    Raises
    ------
    MelaError
        There is no such file.
    """
    if not path.is_file():
        raise MelaError(
            f"{path}: no such file; run python -m studies training.method_rates, or name the table by --table"
        )
    return pd.read_csv(path, dtype={"scale": str, "regularizer": str})


def entry(method: str, choice: Choice) -> float | None:
    """Return a method's entry in the block `rates`: null if the choice is its own rate, or not made yet."""
    return None if choice.rate == find_method(method).learner.learning_rate else choice.rate


def with_rates(text: str, entries: Mapping[str, float | None]) -> str:
    """Return the text of a data set's parameters with these entries in `rates`, and all else unchanged.

    Raises
    ------
    MelaError
        The block lacks one of the methods.
    """
    before, start, rest = re.split(r"^(rates:.*\n)", text, maxsplit=1, flags=re.MULTILINE)
    block = re.match(r"(?:[ \t]+.*\n|#.*\n)*", rest)
    assert block is not None
    lines = block[0]
    for method, rate in entries.items():
        value = "null" if rate is None else np.format_float_positional(rate)
        lines, found = re.subn(rf"^(\s+{method}:) *[^\s#]*", rf"\1 {value}", lines, flags=re.MULTILINE)
        if not found:
            raise MelaError(f"rates.{method}: expected an entry to write the rate into, found none; add it")
    return before + start + lines + rest[block.end() :]


def main(
    data: Annotated[list[str] | None, typer.Option("--data", help="data sets; by default the benchmark's")] = None,
    table: Annotated[Path, typer.Option(help="of training.method_rates")] = TABLE,
    run: Annotated[bool, typer.Option("--run", help="measure the rows that the table lacks, which trains")] = False,
    write: Annotated[bool, typer.Option("--write", help="put the rates into benchmark/data")] = False,
) -> None:
    """Print for each data set the best rates, the rows that the table lacks, and differing parameters."""
    matrix, differing = Matrix.read(), []
    for name in data or matrix.data:
        path = places.preset(name)
        now, entries = RatesParams.read(path).by_name, {}
        for method in matrix.task_methods:
            choice = choose(measured(read_table(table), name, method))
            while run and choice.missing:
                rates = [f"adam:{rate:g}" for rate in choice.missing]
                program("training.method_rates")(data=[name], method=[method], rate=rates, out=table)
                choice = choose(measured(read_table(table), name, method))
            entries[method] = entry(method, choice)
            typer.echo(f"{name} {method}: {_told(method, choice)}")
            if choice.missing:
                rates = [f"--rate adam:{np.format_float_positional(rate)}" for rate in choice.missing]
                command = f"python -m studies training.method_rates --data {name} --method {method}"
                typer.echo(f"  missing: {command} {' '.join(rates)}")
        if any(now.get(method) != rate for method, rate in entries.items()):
            differing.append(str(path))
            if write:
                write_text(path, with_rates(path.read_text(encoding="utf-8"), entries))
    if differing:
        said = "are written" if write else "have other rates; --write puts these in"
        typer.echo(f"{', '.join(differing)} {said}")


def _told(method: str, choice: Choice) -> str:
    """Describe a choice in words."""
    own = find_method(method).learner.learning_rate
    tried = ", ".join(f"{one:.1f} / {five:.1f} at {rate:g}" for rate, (one, five) in choice.accuracies.items())
    if choice.rate is None:
        return f"not chosen yet, so {own:g}, its own" + (f" ({tried})" if tried else "")
    return f"{choice.rate:g}{', its own' if choice.rate == own else f' in place of {own:g}'} ({tried})"
