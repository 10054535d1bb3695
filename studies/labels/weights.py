"""Whether the weights of soft labels mean what they say: weights of task classes against the share that is right.

``python -m studies.labels.weights`` after ``studies.labels.grid``; writes studies/results/label_weights.csv and prints
a summary. A task class is right if its true class is the most frequent one of its cluster.
"""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from sklearn.metrics import roc_auc_score

from mela.io.store import write_csv
from mela.labeling.labeler import LearnLabeler
from studies.cells import RECIPES, STRENGTHS, Cell

BOUNDS = (0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1.01)
COLUMNS = ["data", "seed", "tasks", "embedding", "auc", "low", "n", "weight", "right"]


def weighed(cell: Cell, strength: str, regime: str) -> pd.DataFrame:
    """Columns weight (of a task class in its own cluster) and right, one row per clustered task class."""
    samples = cell.samples(strength, regime)
    found = LearnLabeler(random_state=cell.seed, soft=True).fit_tasks(samples)
    used = np.flatnonzero(found.class_labels_ >= 0)
    labels, truth = found.class_labels_[used], cell.true_classes(samples)[used]
    table = np.zeros((labels.max() + 1, truth.max() + 1), dtype=np.int64)
    np.add.at(table, (labels, truth), 1)
    weights = np.asarray(found.class_weights_[used, labels]).ravel()
    return pd.DataFrame({"weight": weights, "right": table.argmax(axis=1)[labels] == truth})


def summary(table: pd.DataFrame) -> str:
    """For each kind of tasks, n, mean weight and share right between the bounds."""
    lines = []
    for regime, part in table.groupby("tasks"):
        lines.append(f"{regime}:")
        for low, high in pairwise(BOUNDS):
            inside = part[part["low"] == low]
            n = int(inside["n"].sum())
            if n:
                weight, right = (float((inside[name] * inside["n"]).sum()) / n for name in ("weight", "right"))
                lines.append(f"  {low:g} to {min(high, 1):g}: n {n}, weight {weight:.3f}, right {right:.3f}")
    return "\n".join(lines)


def main(
    data: Annotated[list[str], typer.Option(help="data sets")] = [*RECIPES],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="seeds, from 0")] = 3,
    tasks: Annotated[list[str], typer.Option(help="once | repl")] = ["once", "repl"],  # noqa: B006
    folder: Annotated[Path, typer.Option(help="where studies.labels.grid put its cells")] = Path("build/grid"),
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/label_weights.csv"),
) -> None:
    """All cells, merged."""
    parts: list[pd.DataFrame] = []
    for name in data:
        for seed in range(seeds):
            cell = Cell(folder=folder, name=name, seed=seed)
            for regime in tasks:
                for strength in STRENGTHS:
                    found = weighed(cell, strength, regime)
                    wrong = ~found["right"]
                    key: dict[str, Any] = {"data": name, "seed": seed, "tasks": regime, "embedding": strength}
                    key |= {"auc": roc_auc_score(wrong, -found["weight"]) if wrong.any() else None}
                    found["low"] = np.array(BOUNDS)[np.digitize(found["weight"], BOUNDS) - 1]
                    groups = found.groupby("low")
                    parts.append(groups.mean().assign(n=groups.size(), **key).reset_index())
                    write_csv(out, pd.concat(parts)[COLUMNS])
    print(summary(pd.concat(parts)))


if __name__ == "__main__":
    typer.run(main)
