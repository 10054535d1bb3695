"""Train on task classes and on true labels, with what the images of a task share subtracted or not."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from mela.data.array_types import Ints
from mela.evaluation.accuracy import summarize
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.pair_scores import SquaredDistances
from mela.labeling.space import unit_length
from mela.labeling.task_classes import TaskSamples, class_means
from stages.common import paths
from stages.common.round_files import round_files
from studies.clones import change, run_stages
from studies.labels.expected import samples_of_round, scored
from studies.labels.people import prepare, run_folder, tested

BEFORE = ("images", "names", "manifest", "embed", "extract", "label_oracle")


def measure(
    *, data: str, share: float | None, centered: bool, seed: int, folder: Path, root: Path
) -> list[dict[str, Any]]:
    """Return a row for the embedding of the first round, which tells task classes apart, and one for true labels.

    Parameters
    ----------
    data, share, seed, folder, root
        As in `studies.labels.people.measure`. Both values of `centered` use one folder, which the last one removes.
    centered : bool
        Whether what the images of a task share is subtracted.
    """
    own = run_folder(folder, data, share, seed)
    if not (own / paths.ORACLE_LABELS).exists():
        prepare(own, data=data, share=share, seed=seed, root=root)
        # a first round needs no initial embedding
        change(own / "params.yaml", {"embed.epochs": 0})
        run_stages(own, *BEFORE)
    change(own / "params.yaml", {"pretrain.center_tasks": centered})
    run_stages(own, "round first", "pretrain oracle")
    samples, truth = samples_of_round(own, "first")
    labels = MergeLabeler().fit_tasks(samples).class_labels_
    found = {"nearest": nearest_alike(samples, truth)} | scored(truth, labels)
    rows = [
        {"labels": "task classes"} | found | accuracies(own, own / round_files("first").model),
        {"labels": "oracle"} | accuracies(own, own / paths.ORACLE),
    ]
    if centered:
        shutil.rmtree(own)
    return rows


def nearest_alike(samples: TaskSamples, truth: Ints) -> float:
    """Return for how many task classes, as a share, the nearest one of another task is of the same class, by angle."""
    squared = SquaredDistances(unit_length(class_means(samples).means)).of(np.arange(len(truth)))
    tasks = samples.task_ids
    squared[tasks[:, None] == tasks] = np.inf
    return float((truth[squared.argmin(axis=1)] == truth).mean())


def accuracies(run: Path, model: Path) -> dict[str, float]:
    """Return the few-shot accuracy of an embedding on the test tasks of a run, in percent, with half of an interval."""
    told = summarize(tested(run, model).assign(model="initial"))["accuracy"]["initial"]
    means = {setting: interval["mean"] for setting, interval in told.items()}
    return means | {f"{setting}_ci95": interval["ci95"] for setting, interval in told.items()}
