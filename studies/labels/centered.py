"""Tell task classes apart with what the images of a task share subtracted, and with features as they are."""

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
from mela.params import PARAMS, MergingParams
from stages.common.round_files import round_files
from studies.clones import change, run_stages
from studies.labels.expected import samples_of_round, scored
from studies.labels.people import prepare, run_folder, tested

BEFORE = ("images", "names", "manifest", "embed", "extract")


def measure(*, data: str, share: float | None, seed: int, folder: Path, root: Path) -> list[dict[str, Any]]:
    """Return two rows for the first round, with features as they are, and less the means of tasks.

    The arguments are those of `studies.labels.people.measure`.
    """
    own = run_folder(folder, data, share, seed)
    prepare(own, data=data, share=share, seed=seed, root=root)
    # a first round needs no initial embedding
    change(own / PARAMS, {"embed.epochs": 0})
    run_stages(own, *BEFORE)
    rows = []
    for how in (True, "centered"):
        change(own / PARAMS, {"rounds.first": how})
        run_stages(own, "round first")
        rows.append({"centered": how == "centered"} | row_of(own))
    shutil.rmtree(own)
    return rows


def row_of(run: Path) -> dict[str, Any]:
    """Return how good the embedding of the first round is, and the labels that merging finds by its features."""
    samples, truth = samples_of_round(run, "first")
    labels = MergeLabeler(**MergingParams.read(run / PARAMS).arguments).fit_tasks(samples).class_labels_
    found = {"nearest": nearest_alike(samples, truth)} | scored(truth, labels)
    return found | accuracies(run, run / round_files("first").model)


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
