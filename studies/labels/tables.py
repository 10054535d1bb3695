"""Print markdown tables of merging beside pruning, from the results of studies.

``python -m studies labels.tables`` prints merging beside pruning, with ``--uneven`` for classes of unequal frequency,
and with ``--mixed`` the tasks of mixed levels.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import typer

from mela.evaluation.intervals import Interval
from studies.cells import ZIPF

ROWS = Path("studies/results/label_grid.csv")
MIXED = Path("studies/results/mixed_levels.csv")
EVEN = {"once": "no replacement", "repl": "replacement"}
UNEVEN = {name: f"frequency ~ rank^-{exponent:g}" for name, exponent in ZIPF.items()}
NAMES = {"glyphs": "glyphs", "omniglot": "Omniglot", "cifar_fs": "CIFAR-FS", "fc100": "FC100"}


def span(values: pd.Series, digits: int) -> str:
    """Return the smallest and the largest value, or the one they share."""
    if values.empty:
        return "not run"
    low, high = f"{values.min():.{digits}f}", f"{values.max():.{digits}f}"
    return low if low == high else f"{low} to {high}"


def lines(seeds: list[int], tasks: Mapping[str, str] = EVEN) -> Iterator[str]:
    """Yield a row for each data set, kind of tasks and embedding: merged beside the best and the worst q."""
    table = pd.read_csv(ROWS).query("seed in @seeds")
    pruned = table["labeler"].str.startswith("pruned") & ~table["labeler"].str.endswith("assigned")
    loose = table["labeler"].str.endswith("no guard")
    yield (
        "| data | tasks | embedding, val. accuracy | true | **clusters** | **accuracy** | **ARI** | **clustered** "
        "| pruned, best q: ARI | pruned, all q: ARI | no guard, all q: ARI |"
    )
    yield "|---" * 11 + "|"
    for name, regime, strength in product(NAMES, tasks, ("weak", "strong")):
        here = (table[["data", "tasks", "embedding"]] == [name, regime, strength]).all(axis=1)
        merged = table[here & (table["labeler"] == "merged")]
        if merged.empty:
            continue
        guarded, plain = table[here & pruned & ~loose], table[here & pruned & loose]
        means = guarded.groupby("labeler")["ari"].mean()
        best = guarded[guarded["labeler"] == means.idxmax()] if len(guarded) else guarded
        digits = {"clusters": 0, "accuracy": 1, "ari": 3, "tasks_clustered": 1}
        cells = [NAMES[name], tasks[regime], f"{strength}, {span(merged['validation'], 0)}%"]
        cells += [str(merged["true"].iloc[0])]
        cells += [f"**{span(merged[column], places)}**" for column, places in digits.items()]
        cells += [span(rows["ari"], 3) for rows in (best, guarded, plain)]
        yield "| " + " | ".join(cells) + " |"


def mean(values: pd.Series) -> str:
    """Return the mean over the seeds and, if there are several, its interval."""
    known = values.dropna().to_numpy(dtype=np.float64)
    if len(known) < 2:
        return "".join(f"{value:+.1f}" for value in known)
    return f"{Interval.of(known):+.1f}"


def mixed_lines() -> Iterator[str]:
    """Yield accuracies of every seed, and differences to inferred labels: means over seeds with 95% intervals."""
    table = pd.read_csv(MIXED)
    columns = [*product(["fine", "mixed"], ["1_shot", "5_shot"])]
    yield "| labels, seeds | " + " | ".join(map(", ".join, columns)) + " | classes |"
    yield "|---" * (len(columns) + 2) + "|"
    for labels, own in table.groupby("labels", sort=False):
        rows = {test: own[own["test"] == test] for test in ("fine", "mixed")}
        seeds, classes = (", ".join(f"{value:.0f}" for value in rows["fine"][name]) for name in ("seed", "classes"))
        found = [", ".join(f"{value:.1f}" for value in rows[test][shots]) for test, shots in columns]
        yield f"| {labels} ({seeds}) | {' | '.join(found)} | {classes} |"
        if labels != "inferred":
            less = [mean(rows[test][f"{shots}_less_inferred"]) for test, shots in columns]
            yield f"| less inferred | {' | '.join(less)} | |"


def main(
    seeds: Annotated[list[int], typer.Option(help="which, again and again")] = [0, 1, 2],  # noqa: B006
    uneven: Annotated[bool, typer.Option("--uneven", help="classes of unequal frequency")] = False,
    mixed: Annotated[bool, typer.Option("--mixed", help="tasks of mixed levels")] = False,
) -> None:
    """Print the table of merging beside the best and the worst q, or of mixed levels."""
    for line in mixed_lines() if mixed else lines(seeds, UNEVEN if uneven else EVEN):
        typer.echo(line)
