"""What labels are worth in few-shot accuracy: pre-training on each, the same test tasks for all, paired differences.

Uses the cells of `studies.labels.grid`. One row of studies/results/label_worth.csv per labeler, with the accuracy of
every test task beside it (in the folder of the cell), so that differences can be taken per task.
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
from mela.labeling.image_labels import image_weights, label_images, weights_table
from mela.labeling.labeler import LearnLabeler
from mela.models.backbones import Backbone, build_backbone
from mela.models.files import configure, load_model
from mela.params import EvaluateParams, ModelParams, PretrainParams
from mela.runtime.compute import Compute
from mela.training.embeddings import pretrain
from mela.training.loop import Schedule
from mela.training.targets import Targets, soft_targets
from studies.cells import Cell, lengthened, logistic_accuracies

ROWS = Path("studies/results/label_worth.csv")
KEYS = ["data", "seed", "tasks", "embedding", "labels", "q"]
LABELS: dict[str, dict[str, Any] | None] = {
    "initial": None,
    "oracle": None,
    "merged": {"merge": True},
    "merged, all tasks": {"merge": True, "collisions": "assign"},
    "merged, soft": {"merge": True, "soft": True},
    "pruned": {"merge": False},
    "pruned, soft": {"merge": False, "soft": True},
    "pruned, no guard": {"merge": False, "guard": False},
}


def image_labels(cell: Cell, regime: str, strength: str, labels: str, q: float) -> Targets:
    """What pre-training learns."""
    samples, ids = cell.samples(strength, regime), np.load(cell.own / "ids.npy")
    if labels == "oracle":
        images = np.unique(ids[samples.index])
        known = cell.truth().set_index("image_id")["class"].loc[images]
        return Targets(image_ids=images, labels=pd.factorize(known, sort=True)[0])
    settings = LABELS[labels] or {}
    n_clusters = min(cell.recipe.n_clusters, len(samples.sizes))
    found = LearnLabeler(**settings, q=q, n_clusters=n_clusters, random_state=cell.seed).fit_tasks(samples)
    image_ids = ids[samples.index]
    flat = label_images(found.class_labels_, len(found.cluster_centers_), image_ids, samples.classes)
    if found.soft:
        weights = image_weights(flat, found.class_weights_, image_ids, samples.classes)
        return soft_targets(weights_table(flat.image_ids, weights), labels)
    return Targets(image_ids=flat.image_ids, labels=flat.labels)


def trained(cell: Cell, targets: Targets, epochs: int | None, compute: Compute | None = None) -> Backbone:
    """An embedding pre-trained with the preset's schedule, or one of so many epochs."""
    images, settings = cell.images(), cell.block(PretrainParams)
    if epochs:
        settings = lengthened(settings, epochs)
    backbone = build_backbone(**configure(cell.block(ModelParams), images, targets.image_ids), seed=cell.seed)
    pretrain(
        backbone,
        images,
        targets,
        cell.training("pretrain", Schedule(**settings.schedule()), compute),
        batch_size=settings.batch_size,
    )
    return backbone


def accuracies(cell: Cell, model: Backbone, tasks: Episodes) -> pd.DataFrame:
    """Columns task_id, setting, accuracy: the preset's meta-test."""
    head = cell.block(EvaluateParams, shots=[1, cell.recipe.shots])
    return logistic_accuracies(model, cell.images(), tasks, head)


def per_task(cell: Cell, regime: str, strength: str, labels: str, q: float, epochs: int | None) -> pd.DataFrame:
    """Accuracies of each test task; read where they are known."""
    setting = "" if labels == "initial" else f"-{epochs or 'preset'}-epochs"
    setting += f"-q{q}" if _prunes(labels) else ""
    path = cell.own / f"worth-{regime}-{strength}-{labels.replace(', ', '-').replace(' ', '-')}{setting}.parquet"
    if not path.exists():
        count = 0
        if labels == "initial":
            model: Backbone = load_model(cell.own / f"{strength}.safetensors", torch.device("cpu"), cell.images())
        else:
            targets = image_labels(cell, regime, strength, labels, q)
            model, count = trained(cell, targets, epochs), targets.n_labels
        table = accuracies(cell, model, Episodes(cell.tasks("test")))
        with replacing(path) as temporary:
            table.assign(classes=count).to_parquet(temporary)
    return pd.read_parquet(path)


def compared(wide: pd.DataFrame, reference: pd.DataFrame | None, against: str) -> dict[str, Any]:
    """Means and intervals of each setting (a column), and of the differences per task (a row) to a reference."""
    found: dict[str, Any] = {}
    for setting in map(str, wide.columns):
        own = Interval.of(wide[setting].to_numpy(np.float64))
        found |= {setting: round(own.mean, 2), f"{setting}_ci95": round(own.ci95, 2)}
        if reference is not None:
            paired = Interval.of((wide - reference)[setting].to_numpy(np.float64))
            found[f"{setting}_less_{against}"] = round(paired.mean, 2)
            found[f"{setting}_less_{against}_ci95"] = round(paired.ci95, 2)
    return found


def _prunes(labels: str) -> bool:
    return (LABELS[labels] or {}).get("merge") is False


def main(
    data: str,
    seed: int = 0,
    tasks: Annotated[str, typer.Option(help="once | repl")] = "repl",
    embedding: Annotated[str, typer.Option(help="weak | strong")] = "strong",
    labels: Annotated[list[str], typer.Option(help="which")] = [*LABELS],  # noqa: B006
    q: Annotated[float, typer.Option(help="of pruning")] = 4.5,
    epochs: Annotated[int | None, typer.Option(help="of pre-training; the preset's if not given")] = None,
    folder: Annotated[Path, typer.Option(help="where studies.labels.grid put its cells")] = Path("build/grid"),
    rows: Annotated[Path, typer.Option(help="the table")] = ROWS,
) -> None:
    """Add the rows of one cell."""
    cell = Cell(folder=folder, name=data, seed=seed)
    reference = None
    for name in ["oracle", *(name for name in labels if name != "oracle")]:
        table = per_task(cell, tasks, embedding, name, q, epochs)
        wide = table.pivot(index="task_id", columns="setting", values="accuracy")
        reference = wide if reference is None else reference
        row: dict[str, Any] = dict(
            zip(KEYS, [data, seed, tasks, embedding, name, str(q) if _prunes(name) else "-"], strict=True)
        )
        row |= {"classes": int(table["classes"].iloc[0]), "n": len(wide), "epochs": epochs or "preset"}
        row |= compared(wide, None if name == "oracle" else reference, "oracle")
        old: list[Any] = pd.read_csv(rows).to_dict("records") if rows.exists() else []
        kept = [one for one in old if [one[key] for key in KEYS] != [row[key] for key in KEYS]]
        store.write_text(rows, pd.DataFrame([*kept, row]).to_csv(index=False))
        print(row, flush=True)


if __name__ == "__main__":
    typer.run(main)
