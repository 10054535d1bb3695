"""Measure what labels are worth in few-shot accuracy, for ``python -m studies labels.worth``."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mela.data.quarter_turns import TURNS
from mela.evaluation.intervals import Interval
from mela.io import schemas, store
from mela.io.checked_tables import read_manifest
from mela.labeling.labeler_choice import build_labeler
from mela.params import PARAMS, EmbedParams, PretrainParams
from mela.runtime.usage import FOLDER as USAGE
from mela.training.targets import Targets
from stages.common import paths
from studies.cells import Cell
from studies.lab import cached, inferred, wide

# settings of the labeler; without any, nothing is trained or the labels are true
LABELS: dict[str, dict[str, Any]] = {
    "oracle": {},
    "initial": {},
    "merged": {"merge": True},
    "merged, all tasks": {"merge": True, "collisions": "assign"},
    "merged, soft": {"merge": True, "soft": True},
    "pruned": {"merge": False},
    "pruned, soft": {"merge": False, "soft": True},
    "pruned, no guard": {"merge": False, "guard": False},
}


def own_q(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of the grid without q if nothing is pruned."""
    return cell if LABELS[cell["labels"]].get("merge") is False else cell | {"q": "-"}


def targets(cell: Cell, tasks: str, embedding: str, labels: str, q: Any) -> Targets:
    """Return what pre-training learns."""
    samples, ids = cell.samples(embedding, tasks), cell.ids
    if labels == "oracle":
        return cell.true_targets(np.unique(ids[samples.index]))
    n_clusters = min(cell.recipe.n_clusters, len(samples.sizes))
    own = LABELS[labels] | ({"q": q} if q != "-" else {})
    found = build_labeler(**own, n_clusters=n_clusters, random_state=cell.seed).fit_tasks(samples)
    return inferred(found, ids[samples.index], samples.classes, soft=found.soft)


def per_task(cell: Cell, tasks: str, embedding: str, labels: str, q: Any, epochs: str) -> pd.DataFrame:
    """Return the accuracies of each test task, and the number of learned classes; read them if known."""
    setting = "" if labels == "initial" else f"-{epochs}-epochs"
    setting += "" if q == "-" else f"-q{q}"

    def test() -> pd.DataFrame:
        if labels == "initial":
            return cell.tested(cell.load(embedding), cell.tasks("test")).assign(classes=0)
        known = targets(cell, tasks, embedding, labels, q)
        model = cell.finished(known, None if epochs == "preset" else int(epochs))
        return cell.tested(model, cell.tasks("test")).assign(classes=known.n_labels)

    name = labels.replace(", ", "-").replace(" ", "-")
    return cached(cell.own / f"worth-{tasks}-{embedding}-{name}{setting}.parquet", test)


def compared(own: pd.DataFrame, reference: pd.DataFrame | None, against: str, *, digits: int = 2) -> dict[str, Any]:
    """Return means and intervals of each setting (a column), and of the differences per task (a row) to a reference."""
    found: dict[str, Any] = {}
    for setting in map(str, own.columns):
        parts = {setting: own[setting]}
        if reference is not None:
            parts[f"{setting}_less_{against}"] = own[setting] - reference[setting]
        for name, values in parts.items():
            interval = Interval.of(values.to_numpy(np.float64))
            found |= {name: round(interval.mean, digits), f"{name}_ci95": round(interval.ci95, digits)}
    return found


def tested_in(run: Path, model: str) -> pd.DataFrame:
    """Return a model's accuracies in a pipeline's folder: a row for each test task, a column for each setting."""
    tested = store.read_table(run / paths.PER_TASK, schemas.ACCURACIES)
    return wide(tested.query("split == 'test' and model == @model"))


def of_a_run(*, data: str, labels: str, projects: Path, seed: int | None = None) -> dict[str, Any]:
    """Return the accuracy in a pipeline that ran in a folder of its own, beside that with true labels.

    Parameters
    ----------
    data : str
        A preset, or what the folder is called.
    labels : str
        initial, or the name of labels.
    projects : Path
        Folder of the folders.
    seed : int, optional
        Which ends the folder's name, if it is given.
    """
    run = projects / (data if seed is None else f"{data}_{seed}")
    own, true = (tested_in(run, name) for name in (labels, "oracle"))
    learned = run / paths.LABELS / f"{labels}.parquet"
    known = labels != "initial"
    classes = {"classes": store.read_table(learned, schemas.LABELS)["label"].nunique()} if known else {}
    usage = run / USAGE / (f"pretrain@{labels}.json" if known else "embed.json")
    taken = {"minutes": store.read_json(usage)["seconds"] / 60} if usage.exists() else {}
    if (run / PARAMS).exists():
        taken["images"] = _images_seen(run, learned if known else None)
    accuracies = compared(own, None if labels == "oracle" else true, "oracle", digits=3)
    return {**classes, **taken, "n": len(own), **accuracies}


def of_a_mixed_run(*, data: str, labels: str, projects: Path, seed: int) -> list[dict[str, Any]]:
    """Return a row for all test tasks of a pipeline with several data sets, and a row for those of each data set.

    Parameters are those of `of_a_run`. The first row also scores the labels.
    """
    run = projects / f"{data}_{seed}"
    scores = store.read_json(run / paths.SCORES).get(labels, {})
    known = store.read_json(run / paths.LABELING / f"{labels}.json") if labels in ("merged", "pruned") else {}
    about = {**scores, **known}
    scored = {name: about.get(name) for name in ("true_classes", "tasks_clustered", "accuracy", "ari")}
    whole = of_a_run(data=data, labels=labels, projects=projects, seed=seed)
    own, true = (tested_in(run, name) for name in (labels, "oracle"))
    first, *others = compared_by_dataset(run, own, None if labels == "oracle" else true)
    return [{**whole, **scored, **first}, *others]


def compared_by_dataset(run: Path, own: pd.DataFrame, true: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Return what `compared` does for all test tasks of a pipeline, and with several data sets for those of each."""
    of_each = {"all": own.index.tolist()} | tasks_by_dataset(run)
    return [
        {
            "dataset": name,
            "n": len(ids),
            **compared(own.loc[ids], None if true is None else true.loc[ids], "oracle", digits=3),
        }
        for name, ids in of_each.items()
    ]


def tasks_by_dataset(run: Path) -> dict[str, list[int]]:
    """Return the test tasks of each of a pipeline's data sets; none if there is one."""
    manifest = read_manifest(run / paths.TEST)
    if "dataset" not in manifest:
        return {}
    tasks = manifest.drop_duplicates("task_id").groupby("dataset")["task_id"]
    return {str(name): ids.tolist() for name, ids in tasks}


def _images_seen(run: Path, learned: Path | None) -> int:
    """Return how many images a training has seen: on labels in a table, or of the initial embedding."""
    if learned is not None:
        settings = PretrainParams.read(run / PARAMS)
        turns = TURNS if settings.rotated_classes else 1
        return settings.epochs * turns * len(store.read_table(learned, schemas.LABELS))
    embed, tasks = EmbedParams.read(run / PARAMS), store.read_table(run / paths.TRAIN, schemas.MANIFEST)
    count = tasks["task_id"].nunique()
    return round(embed.epochs * (embed.tasks_per_epoch or count) * len(tasks) / count)


def measure(
    *, data: str, seed: int, tasks: str, embedding: str, labels: str, q: Any, epochs: str, folder: Path
) -> dict[str, Any]:
    """Return the accuracy after pre-training on labels, and how far it is from that on true ones."""
    cell = Cell.of(folder, data, seed)
    found = per_task(cell, tasks, embedding, labels, q, epochs)
    true = None if labels == "oracle" else wide(per_task(cell, tasks, embedding, "oracle", "-", epochs))
    own = wide(found)
    return {"classes": int(found["classes"].iloc[0]), "n": len(own), **compared(own, true, "oracle")}
