"""The meta-test of all tasks at once against scikit-learn's loop, on the features of the last run.

``python -m studies.speed.heads`` after ``dvc repro evaluate`` (or a whole run); with ``--cell cifar_fs/0`` on a cell of
studies.labels.grid. Time is that of everything after the features: first shots, heads and predictions. scikit-learn has
one thread, since these problems are too small for more. All tasks need to be of one shape.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
import typer
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes, FlatTasks, TaskGroup
from mela.evaluation.accuracy import Lookup, Solver, feature_lookups, predictions, support_of
from mela.evaluation.logistic import fit_heads
from mela.io import schemas, store
from mela.models.backbones import Backbone
from mela.models.files import load_model
from mela.params import AugmentParams
from stages.common import paths
from studies.cells import Cell
from studies.speed.measure import alternate, record, write_rows

SETTINGS = {"1_shot": (1, False), "5_shot": (5, False), "5_shot_augmented": (5, True)}
COPIES, REFEREED = 5, 200
THREADS = torch.get_num_threads()


@dataclass(frozen=True, kw_only=True)
class Material:
    """Tasks to test on, and features."""

    data: str
    tasks: Episodes
    plain: Lookup
    copies: Lookup

    @classmethod
    def of(
        cls,
        data: str,
        backbone: Backbone,
        images: npt.NDArray[np.uint8],
        tasks: Episodes,
        augmentation: Augmentation,
    ) -> "Material":
        """With five augmented copies of the support images."""
        plain, copies = feature_lookups(backbone, images, tasks, copies=COPIES, augmentation=augmentation, seed=0)
        assert copies is not None
        return cls(data=data, tasks=tasks, plain=plain, copies=copies)


def last_run() -> Material:
    """Of the pipeline: its test tasks and its final embedding."""
    images = store.open_images(paths.IMAGES)
    augmentation = Augmentation(**AugmentParams.read().model_dump())
    tasks = Episodes(store.read_table(paths.TEST, schemas.MANIFEST))
    return Material.of("pipeline", load_model(paths.FINAL, torch.device("cpu"), images), images, tasks, augmentation)


def of_cell(folder: Path, name: str, seed: int) -> Material:
    """Of a cell of the grid: 1,000 test tasks and the strong embedding."""
    cell = Cell(folder=folder, name=name, seed=seed)
    model = load_model(cell.own / "strong.safetensors", torch.device("cpu"), cell.images())
    return Material.of(name, model, cell.images(), Episodes(cell.tasks("test")), cell.augmentation)


def compare(material: Material, setting: str, n: int) -> dict[str, Any]:
    """Times of both, the share of queries with the same prediction, and distances from a far finer solution."""
    shots, augmented = SETTINGS[setting]
    support = material.copies if augmented else material.plain

    def run(solver: Solver, threads: int = THREADS) -> tuple[TaskGroup, npt.NDArray[np.int64]]:
        torch.set_num_threads(threads)
        (group,) = FlatTasks.of(material.tasks).first_shots(shots).groups()
        return group, predictions(group, support, material.plain, C=1.0, max_iter=1000, solver=solver)

    ours, alone, reference = alternate(lambda: run("batched"), lambda: run("batched", 1), lambda: run("sklearn"), n=n)
    (group, found), (_, expected) = run("batched"), run("sklearn")
    few = group[:REFEREED]
    features, labels = support_of(few, support)
    query = material.plain(few.query)[:, :, 0]
    logits = fit_heads(features, labels, few.ways, C=1.0, max_iter=1000).logits(query)
    away, fine_labels = 0.0, np.empty_like(few.query_labels)
    for i in range(len(few)):
        fine = LogisticRegression(C=1.0, tol=1e-10, max_iter=100_000, class_weight="balanced")
        fine.fit(features[i].astype(np.float64), labels[i])
        wanted = fine.predict_proba(query[i].astype(np.float64))
        away = max(away, float(np.abs(softmax(logits[i], axis=0).T - wanted).max()))
        fine_labels[i] = wanted.argmax(axis=1)
    return record(
        f"meta_test_{setting}",
        ours,
        reference,
        unit="s",
        n=n,
        data=material.data,
        tasks=len(group),
        dimensions=int(query.shape[-1]),
        threads=THREADS,
        one_thread=round(alone.median, 4),
        same_predictions=round(float((found == expected).mean()), 6),
        largest_difference_of_probabilities=away,
        same_as_fine=round(float((found[: len(few)] == fine_labels).mean()), 6),
        reference_same_as_fine=round(float((expected[: len(few)] == fine_labels).mean()), 6),
    )


def main(
    cell: Annotated[str | None, typer.Option(help="NAME/SEED of a cell of studies.labels.grid")] = None,
    folder: Annotated[Path, typer.Option(help="where studies.labels.grid put its cells")] = Path("build/grid"),
    n: Annotated[int, typer.Option(help="rounds")] = 5,
) -> None:
    """Add to studies/results/bench.json."""
    if cell is None:
        material = last_run()
    else:
        name, _, seed = cell.partition("/")
        material = of_cell(folder, name, int(seed))
    rows = []
    for setting in SETTINGS:
        row = compare(material, setting, n)
        rows.append(row)
        faster = f"{1 / row['ratio']:.1f} times as fast ({row['one_thread']} s with one thread)"
        fine = (
            f"at tol=1e-10 {100 * row['same_as_fine']:.3f}%, scikit-learn's {100 * row['reference_same_as_fine']:.3f}%"
        )
        same = f"{100 * row['same_predictions']:.3f}% of predictions the same ({fine})"
        away = f"probabilities within {row['largest_difference_of_probabilities']:.1e}"
        print(
            f"{row['name']} ({row['data']}): {row['ours']} against {row['reference']} s, {faster}, {same}, {away}",
            flush=True,
        )
    write_rows(rows)


if __name__ == "__main__":
    typer.run(main)
