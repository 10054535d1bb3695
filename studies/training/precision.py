"""Few-shot accuracy after training in bfloat16 against float32: the same data, tasks, seeds and schedules.

Uses the cells of `studies.labels.grid`. Both embeddings are trained in both formats, the final one on the true labels,
and meet the same test tasks. One row of studies/results/precision.csv per embedding and setting: the mean over seeds of
the difference, with its interval over seeds (Student's t).
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
import typer

from mela.data.episodes import Episodes
from mela.evaluation.intervals import Interval
from mela.io import store
from mela.io.atomic import replacing
from mela.models.backbones import Backbone, build_backbone
from mela.models.files import configure
from mela.params import ModelParams
from mela.runtime.compute import Compute
from mela.runtime.device import keep_freed_memory
from mela.training.targets import Targets
from studies.cells import Cell
from studies.labels.worth import accuracies, trained

ROWS = Path("studies/results/precision.csv")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def initial(cell: Cell, compute: Compute) -> Backbone:
    """Meta-learned on the tasks that the cell's own embedding saw, with the same schedule."""
    tasks = Episodes(cell.tasks("once"))
    backbone = build_backbone(**configure(cell.block(ModelParams), cell.images(), tasks.image_ids()), seed=cell.seed)
    cell.train_strong(backbone, tasks, compute)
    return backbone


def final(cell: Cell, compute: Compute) -> Backbone:
    """Pre-trained on the true labels with the preset's schedule."""
    truth = cell.truth()
    own = truth[truth["split"] == "train"]
    targets = Targets(image_ids=own["image_id"].to_numpy(), labels=pd.factorize(own["class"], sort=True)[0])
    return trained(cell, targets, None, compute)


EMBEDDINGS = {"initial": initial, "final": final}


def per_task(cell: Cell, embedding: str, name: str) -> pd.DataFrame:
    """Accuracy of each test task (a row) in each setting (a column); read where it is known."""
    path = cell.own / f"precision-{embedding}-{name}.parquet"
    if not path.exists():
        model = EMBEDDINGS[embedding](cell, Compute(dtype=DTYPES[name]))
        table = accuracies(cell, model, Episodes(cell.tasks("test")))
        with replacing(path) as temporary:
            table.to_parquet(temporary)
        print(cell.name, cell.seed, embedding, name, table.groupby("setting")["accuracy"].mean().to_dict(), flush=True)
    return pd.read_parquet(path).pivot(index="task_id", columns="setting", values="accuracy")


def rows_of(cells: list[Cell], embedding: str) -> list[dict[str, Any]]:
    """One row per setting."""
    means = {name: pd.concat([per_task(cell, embedding, name).mean() for cell in cells], axis=1) for name in DTYPES}
    found = []
    for setting in map(str, means["float32"].index):
        values = {name: mean.loc[setting].to_numpy(np.float64) for name, mean in means.items()}
        difference = Interval.of(values["bfloat16"] - values["float32"])
        found.append(
            {
                "data": cells[0].name,
                "embedding": embedding,
                "setting": setting,
                "seeds": len(cells),
                **{name: round(float(value.mean()), 2) for name, value in values.items()},
                "difference": round(difference.mean, 2),
                "difference_ci95": round(difference.ci95, 2),
                "of_each_seed": " ".join(f"{x:+.2f}" for x in values["bfloat16"] - values["float32"]),
            }
        )
    return found


def main(
    data: str,
    seeds: Annotated[int, typer.Option(help="from 0")] = 3,
    folder: Annotated[Path, typer.Option(help="where studies.labels.grid put its cells")] = Path("build/grid"),
    rows: Annotated[Path, typer.Option(help="the table")] = ROWS,
) -> None:
    """Add the rows of one data set."""
    keep_freed_memory()
    cells = [Cell(folder=folder, name=data, seed=seed) for seed in range(seeds)]
    new = [row for embedding in EMBEDDINGS for row in rows_of(cells, embedding)]
    old: list[Any] = pd.read_csv(rows).to_dict("records") if rows.exists() else []
    kept = [row for row in old if row["data"] != data]
    store.write_text(rows, pd.DataFrame([*kept, *new]).to_csv(index=False))
    print(pd.DataFrame(new).to_string(index=False))


if __name__ == "__main__":
    typer.run(main)
