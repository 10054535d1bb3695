"""How labels depend on the samples per task class: the tasks without replacement, cut down to so many images each.

``python -m studies.labels.samples`` after ``studies.labels.grid``; writes studies/results/label_samples.csv and prints
a table.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from sklearn.metrics import adjusted_rand_score

from mela.evaluation.label_scores import majority_accuracy
from mela.io.store import write_csv
from mela.labeling.labeler import LearnLabeler
from mela.labeling.report import label_metrics
from mela.labeling.task_classes import TaskSamples
from studies.cells import STRENGTHS, Cell

LABELERS: dict[str, dict[str, Any]] = {"merged": {"merge": True}, "pruned q=4.5": {"merge": False, "q": 4.5}}


def first_samples(samples: TaskSamples, count: int) -> TaskSamples:
    """The first `count` samples of each task class, in a new order of their own."""
    kept = (samples.first[:, None] + np.arange(count)).ravel()
    return TaskSamples(
        features=samples.features,
        index=samples.index[kept],
        classes=samples.classes[kept],
        order=np.arange(len(kept)),
        task_ids=samples.task_ids,
        local_labels=samples.local_labels,
    )


def main(
    data: Annotated[list[str], typer.Option(help="data sets")] = ["glyphs", "cifar_fs"],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="seeds, from 0")] = 3,
    folder: Annotated[Path, typer.Option(help="where studies.labels.grid put its cells")] = Path("build/grid"),
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/label_samples.csv"),
) -> None:
    """Two to ten samples of twenty."""
    rows: list[dict[str, Any]] = []
    for name in data:
        for seed in range(seeds):
            cell = Cell(folder=folder, name=name, seed=seed)
            for strength in STRENGTHS:
                whole = cell.samples(strength, "once")
                truth = cell.true_classes(whole)
                for count in (2, 3, 5, 10):
                    for labeler, settings in LABELERS.items():
                        n_clusters = min(cell.recipe.n_clusters, len(truth))
                        found = LearnLabeler(**settings, n_clusters=n_clusters, random_state=seed, soft=True)
                        found.fit_tasks(first_samples(whole, count))
                        used = found.class_labels_ >= 0
                        labels, known = found.class_labels_[used], truth[used]
                        row = {"data": name, "seed": seed, "embedding": strength, "samples": count, "labeler": labeler}
                        row |= {"clusters": len(np.unique(labels)), "accuracy": 100 * majority_accuracy(labels, known)}
                        row |= {"ari": adjusted_rand_score(known, labels), **label_metrics(found)}
                        rows.append(row)
                write_csv(out, pd.DataFrame(rows))
    table = pd.DataFrame(rows).groupby(["data", "embedding", "samples", "labeler"])
    print(table[["clusters", "accuracy", "ari", "tasks_clustered", "certainty"]].mean().round(3).to_string())


if __name__ == "__main__":
    typer.run(main)
