"""Divide the tasks of a preset among few people, and find out what it is worth to know whose each task is."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.labeling.merge_labeler import MergeLabeler
from mela.params import PARAMS, ROUNDS, RoundsParams
from stages.common import paths
from stages.common.round_files import BEFORE_ROUNDS, round_files
from stages.common.samples import read_samples
from studies.clones import change, for_clone
from studies.labels.expected import scored, true_classes
from studies.labels.people import LABELS, people_of, prepare, row_of


def measure(*, data: str, people: int, seed: int, folder: Path, root: Path) -> list[dict[str, Any]]:
    """Return a row for each kind of labels, and two for the features of each round: with sources, and without.

    Parameters
    ----------
    data : str
        The preset, whose training tasks are divided.
    people : int
        Among how many.
    seed : int
        Of the people, and of both trainings.
    folder : Path
        The run has a folder of its own in this one.
    root : Path
        Folder of the raw data, which glyphs need none of.
    """
    known, own = people_of(data), folder / f"{data}_of_{people}_{seed}"
    prepare(own, data=data, share=known.share, seed=seed, root=root)
    divided = known.model_copy(update={"train": people, "tasks": known.train // people})
    change(own / PARAMS, {"data.people": divided.model_dump(exclude_defaults=True)})
    subprocess.run([sys.executable, "-m", "mela", "run"], cwd=own, env=for_clone(), check=True)
    metrics = store.read_json(own / paths.OVERVIEW)
    rows = [row_of(metrics, labels) | {"sources": True} for labels in LABELS] + rows_of_rounds(own)
    shutil.rmtree(own)
    return rows


def rows_of_rounds(run: Path) -> list[dict[str, Any]]:
    """Return how good the clusters are that merging finds by the features of each round of a run."""
    manifest, switches = read_manifest(run / paths.TRAIN), RoundsParams.read(run / PARAMS)
    features = {"initial": BEFORE_ROUNDS} | {name: round_files(name) for name in ROUNDS if getattr(switches, name)}
    rows = []
    for name, files in features.items():
        looks = None if files.looks is None else run / files.looks
        samples, images = read_samples(manifest, run / files.features, looks, run / paths.TASK_SOURCES)
        truth = true_classes(run, samples, images)
        for told in (True, False):
            labeler = MergeLabeler().fit_tasks(samples if told else replace(samples, sources=None))
            found = scored(truth, labeler.class_labels_)
            rows.append({"labels": f"by {name}", "sources": told, "true_classes": int(truth.max()) + 1} | found)
    return rows
