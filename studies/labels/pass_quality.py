"""Whether clusters can be judged without the truth: passes of pruning by `pair_quality` and by the true classes.

``python -m studies.labels.pass_quality`` after ``studies.labels.grid``; writes studies/results/pass_quality.csv and
prints a summary.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import typer

from mela.io.store import write_csv
from mela.labeling.centroids import Centroids, norms
from mela.labeling.pair_quality import pair_quality
from mela.labeling.pruning import run_pass
from mela.labeling.task_classes import class_means
from studies.cells import STRENGTHS, Cell

Ints = npt.NDArray[np.int64]


def true_pairs(clusters: Ints, truth: Ints) -> tuple[float, float]:
    """Pair precision, and the index of Fowlkes and Mallows."""
    table = np.zeros((clusters.max() + 1, truth.max() + 1))
    np.add.at(table, (clusters, truth), 1)
    both = (table * (table - 1)).sum()
    found, right = (float((sums * (sums - 1)).sum()) for sums in (table.sum(axis=1), table.sum(axis=0)))
    return float(both / found), float(both / np.sqrt(found * right))


def passes(cell: Cell, strength: str, q: float) -> list[dict[str, Any]]:
    """One row per pass of Algorithm 2 to the letter, until fewer clusters are left than a task has classes."""
    samples = cell.samples(strength, "repl")
    classes, truth = class_means(samples), cell.true_classes(samples)
    generator = np.random.default_rng(cell.seed)
    order = generator.permutation(len(classes.ways))
    centroids = classes.means[generator.permutation(len(classes.means))[: cell.recipe.n_clusters]]
    radius, rows = float(norms(classes.means).max()), []
    for number in range(1, 100):
        moving = Centroids(centroids, radius)
        weights, counts = np.ones(len(moving)), np.zeros(len(moving), dtype=np.int64)
        matched, found = run_pass(classes.means, classes.sizes, classes.starts, order, moving, weights, counts)
        quality, (precision, index) = pair_quality(found, classes.starts), true_pairs(found, truth)
        row = {"data": cell.name, "seed": cell.seed, "embedding": strength, "q": q, "pass": number}
        row |= {"clusters": len(moving), "true_precision": precision, "precision": quality.precision}
        row |= {"precision_error": quality.precision_error, "true_index": index, "match": quality.match}
        rows.append(row)
        share = classes.ways[matched] / len(moving)
        keep = counts >= max(counts.mean() - q * np.sqrt((share * (1 - share)).sum()), 1)
        if keep.all() or keep.sum() < classes.ways.max():
            return rows
        centroids = moving.points[keep]
    return rows


def main(
    data: Annotated[list[str], typer.Option(help="data sets")] = ["glyphs", "cifar_fs", "fc100"],  # noqa: B006
    folder: Annotated[Path, typer.Option(help="where studies.labels.grid put its cells")] = Path("build/grid"),
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/pass_quality.csv"),
) -> None:
    """Three seeds, both embeddings, four q."""
    rows = []
    for name in data:
        for seed in range(3):
            for strength in STRENGTHS:
                for q in (3.5, 4.5, 5.5, 6.5):
                    rows += passes(Cell(folder=folder, name=name, seed=seed), strength, q)
    table = pd.DataFrame(rows).round(4)
    write_csv(out, table)
    runs = table.groupby(["data", "seed", "embedding", "q"])
    by_match, by_truth = table.loc[runs["match"].idxmax()], table.loc[runs["true_index"].idxmax()]
    lost = by_truth["true_index"].to_numpy() - by_match["true_index"].to_numpy()
    last = by_truth["true_index"].to_numpy() - table.loc[runs["pass"].idxmax(), "true_index"].to_numpy()
    error = (table["precision"] - table["true_precision"]).abs()
    print(f"{runs.ngroups} runs, {len(table)} passes; {(lost == 0).sum()} times the pass of the best match is the best")
    print(f"index lost by it: mean {lost.mean():.3f}, most {lost.max():.3f}; by the last pass: {last.mean():.3f}")
    print(f"estimated and true precision differ by {error.mean():.3f} on average, {error.max():.3f} at most")


if __name__ == "__main__":
    typer.run(main)
