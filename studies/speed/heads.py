"""Compare the meta-test of all tasks at once with scikit-learn's loop, on the features of the last run.

``python -m studies speed.heads`` after ``dvc repro evaluate`` (or a whole run); with ``--cell cifar_fs/0`` on a cell of
``python -m studies labels.grid``, with its 1,000 test tasks and strong embedding. Time is that of everything after the
features: first shots, heads and predictions. scikit-learn has one thread, since these problems are too small for more.
All tasks need to be of one shape.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from mela.data.array_types import Ints
from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes, FlatTasks, TaskGroup
from mela.evaluation.accuracy import Lookup, Solver, feature_lookups, predictions, support_of
from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.learners.logistic import fit_heads
from mela.models.files import load_model
from mela.params import AugmentParams
from stages.common import paths
from studies.cells import Cell
from studies.speed.measure import alternate, record, write_rows

SETTINGS = {"1_shot": (1, False), "5_shot": (5, False), "5_shot_augmented": (5, True)}
COPIES, REFEREED = 5, 200
THREADS = torch.get_num_threads()


def compare(data: str, tasks: Episodes, plain: Lookup, copies: Lookup | None, setting: str, n: int) -> dict[str, Any]:
    """Return times of both, the share of queries with equal predictions, and distances from a far finer solution.

    Parameters
    ----------
    data : str
    tasks : Episodes
    plain, copies : Lookup
        Features of images, and of augmented copies of the support images.
    setting : str
    n : int
        Rounds.
    """
    shots, augmented = SETTINGS[setting]
    support = copies if augmented and copies is not None else plain

    def run(solver: Solver, threads: int = THREADS) -> tuple[TaskGroup, Ints]:
        torch.set_num_threads(threads)
        (group,) = FlatTasks.of(tasks).first_shots(shots).groups()
        return group, predictions(group, support, plain, C=1.0, max_iter=1000, solver=solver)

    ours, alone, reference = alternate(lambda: run("batched"), lambda: run("batched", 1), lambda: run("sklearn"), n=n)
    (group, found), (_, expected) = run("batched"), run("sklearn")
    few = group[:REFEREED]
    features, labels = support_of(few, support)
    query = plain(few.query)[:, :, 0]
    logits = fit_heads(features, labels, few.ways, C=1.0, max_iter=1000).logits(query)
    away, fine_labels = 0.0, np.empty_like(few.query_labels)
    for i in range(len(few)):
        fine = LogisticRegression(C=1.0, tol=1e-10, max_iter=100_000, class_weight="balanced")
        fine.fit(features[i].astype(np.float64), labels[i])
        wanted = fine.predict_proba(query[i].astype(np.float64))
        away = max(away, float(np.abs(softmax(logits[i], axis=0).T - wanted).max()))
        fine_labels[i] = wanted.argmax(axis=1)
    shares = {
        "same_predictions": found == expected,
        "same_as_fine": found[: len(few)] == fine_labels,
        "reference_same_as_fine": expected[: len(few)] == fine_labels,
    }
    return record(
        f"meta_test_{setting}",
        ours,
        reference,
        unit="s",
        n=n,
        data=data,
        tasks=len(group),
        dimensions=int(query.shape[-1]),
        threads=THREADS,
        one_thread=round(alone.median, 4),
        largest_difference_of_probabilities=away,
        **{name: round(float(same.mean()), 6) for name, same in shares.items()},
    )


def main(
    cell: Annotated[str | None, typer.Option(help="NAME/SEED of a cell of labels.grid")] = None,
    folder: Annotated[Path, typer.Option(help="where labels.grid put its cells")] = Path("build/grid"),
    n: Annotated[int, typer.Option(help="rounds")] = 5,
) -> None:
    """Add the results to studies/results/bench.json."""
    if cell is None:
        data, images, augment = "pipeline", store.open_images(paths.IMAGES), AugmentParams.read()
        model = load_model(paths.MERGED, torch.device("cpu"), images)
        tasks = read_manifest(paths.TEST)
    else:
        data, _, seed = cell.partition("/")
        found = Cell.of(folder, data, int(seed))
        images, augment = found.images, found.block(AugmentParams)
        model, tasks = found.load("strong"), found.tasks("test")
    episodes, augmentation = Episodes(tasks), Augmentation(**augment.model_dump())
    lookups = feature_lookups(model, images, episodes, copies=COPIES, augmentation=augmentation, seed=0)
    write_rows([compare(data, episodes, *lookups, setting, n) for setting in SETTINGS])
