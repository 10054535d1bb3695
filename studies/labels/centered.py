"""Train rounds with what the images of a task share subtracted, and with features as they are."""

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
from mela.params import PARAMS, ROUNDS, MergingParams, RoundName
from stages.common.round_files import round_files
from studies.clones import change, run_stages
from studies.labels.expected import samples_of_round, scored
from studies.labels.people import own_share, prepare, run_folder, tested

BEFORE = ("images", "names", "manifest", "embed", "extract")


def own_cell(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of the grid as it is measured: all of one round are the first."""
    alone = cell["rounds"] == 1 and cell["centered"] == "all"
    return own_share(cell) | ({"centered": "first"} if alone else {})


def measure(
    *, data: str, share: float | None, seed: int, rounds: int, centered: str, folder: Path, root: Path
) -> dict[str, Any]:
    """Return how good the embedding of the last round is, and the labels that merging finds by its features.

    Parameters
    ----------
    data, share, seed, folder, root
        As in `studies.labels.people.measure`.
    rounds : int
        How many rounds are trained, from 1.
    centered : str
        In which of them features are less the means of their tasks: none, first or all.
    """
    trained = ROUNDS[:rounds]
    less_means = {"none": (), "first": trained[:1], "all": trained}[centered]
    values = {number: "centered" if number in less_means else number in trained for number in ROUNDS}
    own = run_folder(folder, data, share, seed)
    prepare(own, data=data, share=share, seed=seed, root=root)
    # rounds need no initial embedding
    change(own / PARAMS, {"embed.epochs": 0} | {f"rounds.{number}": value for number, value in values.items()})
    run_stages(own, *BEFORE, *(f"round {number}" for number in trained))
    row = row_of(own, trained[-1])
    shutil.rmtree(own)
    return row


def row_of(run: Path, number: RoundName) -> dict[str, Any]:
    """Return how good the embedding of a round is, and the labels that merging finds by its features."""
    samples, truth = samples_of_round(run, number)
    labels = MergeLabeler(**MergingParams.read(run / PARAMS).arguments).fit_tasks(samples).class_labels_
    found = {"nearest": nearest_alike(samples, truth)} | scored(truth, labels)
    return found | accuracies(run, run / round_files(number).model)


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
