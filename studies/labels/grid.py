"""Merging against pruning at many q: data sets x seeds x embeddings x ways of drawing tasks.

``python -m studies.labels.grid --root omniglot=data/raw/omniglot --root cifar_fs=...`` makes what is missing, one row
of studies/results/label_grid.csv at a time; rows that are there are not made again. The best q is the one whose
clusters fit the truth best, which nobody can choose without the truth.
"""

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from sklearn.metrics import adjusted_rand_score

from mela.evaluation.label_scores import majority_accuracy
from mela.io.store import write_text
from mela.labeling.labeler import LearnLabeler
from mela.labeling.report import label_metrics
from studies.cells import RECIPES, REGIMES, STRENGTHS, Cell

ROWS = Path("studies/results/label_grid.csv")
KEYS = ["data", "seed", "tasks", "embedding", "labeler"]
LABELERS: dict[str, dict[str, Any]] = {
    "merged": {"merge": True},
    "merged, colliding tasks assigned": {"merge": True, "collisions": "assign"},
    "pruned q=5.5, colliding tasks assigned": {"merge": False, "q": 5.5, "collisions": "assign"},
    **{f"pruned q={q}": {"merge": False, "q": q} for q in (3.5, 4.0, 4.5, 5.0, 5.5, 6.5)},
    **{f"pruned q={q}, no guard": {"merge": False, "q": q, "guard": False} for q in (3.5, 4.0, 4.5, 5.0, 5.5, 6.5)},
}


def measure(cell: Cell, strength: str, regime: str, labeler: str) -> dict[str, Any]:
    """One row: clusters, accuracy and ARI over clustered task classes, and what is estimated without the truth."""
    samples = cell.samples(strength, regime)
    truth = cell.true_classes(samples)
    settings = LABELERS[labeler] | {"n_clusters": min(cell.recipe.n_clusters, len(truth))}
    row: dict[str, Any] = dict(zip(KEYS, [cell.name, cell.seed, regime, strength, labeler], strict=True))
    frequencies = np.unique(truth, return_counts=True)[1]
    row |= {"validation": round(cell.accuracy(strength), 1), "true": len(frequencies)}
    row |= {"rarest": int(frequencies.min()), "most_frequent": int(frequencies.max())}
    start = time.perf_counter()
    try:
        found = LearnLabeler(**settings, random_state=cell.seed).fit_tasks(samples)
    except ValueError as error:
        return row | {"error": str(error)}
    seconds = time.perf_counter() - start
    used = found.class_labels_ >= 0
    return row | {
        "clusters": len(np.unique(found.class_labels_[used])),
        "accuracy": round(100 * majority_accuracy(found.class_labels_[used], truth[used]), 2),
        "accuracy_all": round(100 * majority_accuracy(found.class_clusters_, truth), 2),
        "ari": round(float(adjusted_rand_score(truth[used], found.class_labels_[used])), 4),
        **{name: round(value, 2) for name, value in label_metrics(found).items()},
        "seconds": round(seconds, 1),
    }


def main(
    data: Annotated[list[str], typer.Option(help="data sets")] = [*RECIPES],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="seeds, from 0")] = 3,
    root: Annotated[list[str], typer.Option(help="NAME=FOLDER of the raw data")] = [],  # noqa: B006
    folder: Annotated[Path, typer.Option(help="where embeddings and features go")] = Path("build/grid"),
    rows: Annotated[Path, typer.Option(help="the table")] = ROWS,
    tasks: Annotated[list[str], typer.Option(help=" | ".join(REGIMES))] = [*REGIMES],  # noqa: B006
    labelers: Annotated[list[str], typer.Option(help="which")] = [*LABELERS],  # noqa: B006
) -> None:
    """Fill the table."""
    roots = {"glyphs": "data/raw/glyphs"} | dict(item.split("=", 1) for item in root)
    done: list[Any] = pd.read_csv(rows).to_dict("records") if rows.exists() else []
    known = {tuple(row[key] for key in KEYS) for row in done}
    for name in data:
        for seed in range(seeds):
            cell = Cell(folder=folder, name=name, seed=seed)
            cell.make(Path(roots.get(name, "")))
            for regime in tasks:
                for strength in STRENGTHS:
                    for labeler in labelers:
                        if (name, seed, regime, strength, labeler) in known:
                            continue
                        done.append(measure(cell, strength, regime, labeler))
                        write_text(rows, pd.DataFrame(done).to_csv(index=False))
                        print(done[-1], flush=True)


if __name__ == "__main__":
    typer.run(main)
