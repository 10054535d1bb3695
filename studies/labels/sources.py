"""Divide the tasks of a preset among few people, and find out what it is worth to know whose each task is."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from mela.labeling.merge_labeler import MergeLabeler
from mela.params import PARAMS, ROUNDS, RoundsParams
from studies.labels.expected import samples_of_round, scored
from studies.labels.people import people_of, prepare, run_pipeline


def measure(*, data: str, people: int, seed: int, folder: Path, root: Path) -> list[dict[str, Any]]:
    """Return a row for each kind of labels, and two for the features of each round: with sources, and without.

    Parameters
    ----------
    data, seed, folder, root
        As in `studies.labels.people.measure`.
    people : int
        Among how many the training tasks of the preset are divided.
    """
    known, own = people_of(data), folder / f"{data}_of_{people}_{seed}"
    tasks = known.train // people
    prepare(own, data=data, share=known.share, seed=seed, root=root, train=people, tasks=tasks)
    rows = [row | {"sources": True} for row in run_pipeline(own)] + rows_of_rounds(own)
    shutil.rmtree(own)
    return rows


def rows_of_rounds(run: Path) -> list[dict[str, Any]]:
    """Return how good the clusters are that merging finds by the features of each round of a run."""
    switches, rows = RoundsParams.read(run / PARAMS), []
    for name in ("initial", *(number for number in ROUNDS if getattr(switches, number))):
        samples, truth = samples_of_round(run, name)
        for told in (True, False):
            labeler = MergeLabeler().fit_tasks(samples if told else replace(samples, sources=None))
            found = scored(truth, labeler.class_labels_)
            rows.append({"labels": f"by {name}", "sources": told, "true_classes": int(truth.max()) + 1} | found)
    return rows
