"""Compare the adjusted Rand index that merging expects without the truth with the true one, where people differ."""

from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from mela.data.array_types import Ints
from mela.errors import MelaError
from mela.io.checked_tables import read_manifest, read_truth
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.task_classes import TaskSamples
from mela.params import RoundName
from stages.common import paths
from stages.common.round_files import BEFORE_ROUNDS, round_files
from stages.common.samples import read_samples
from studies.labels.people import run_folder


def kept_samples(folder: Path, data: str, share: float | None, seed: int, features: str) -> tuple[TaskSamples, Ints]:
    """Return the training tasks of a kept run with the features of a round, and the true class of each task class.

    Parameters
    ----------
    folder, data, share, seed
        As in `studies.labels.people.measure`, which ``--keep`` makes leave its runs.
    features : str
        initial, or the name of a round.

    Raises
    ------
    MelaError
        No such run was left there.
    """
    run = run_folder(folder, data, share, seed)
    if not (run / paths.TRUTH).exists():
        raise MelaError(f"{run}: there is no such run; `python -m studies labels.people --keep` makes it")
    files = BEFORE_ROUNDS if features == "initial" else round_files(cast(RoundName, features))
    looks = None if files.looks is None else run / files.looks
    samples, known = read_samples(
        read_manifest(run / paths.TRAIN), run / files.features, looks, run / paths.TASK_SOURCES
    )
    return samples, true_classes(run, samples, known)


def true_classes(run: Path, samples: TaskSamples, images: Ints) -> Ints:
    """Return the true class (n,) of each task class, from 0, by the truth of a run and the images of feature rows."""
    classes = read_truth(run / paths.TRUTH).set_index("image_id")["class"]
    return pd.factorize(pd.Series(images[samples.index[samples.first]]).map(classes))[0]


def scored(truth: Ints, labels: Ints) -> dict[str, Any]:
    """Return the number of clusters and the adjusted Rand index; a task class without a cluster (-1) is alone."""
    alone = labels < 0
    clusters = np.where(alone, labels.max() + np.cumsum(alone), labels)
    return {"clusters": len(np.unique(clusters)), "ari": float(adjusted_rand_score(truth, clusters))}


def measure(*, data: str, share: float | None, seed: int, features: str, folder: Path) -> dict[str, Any]:
    """Return what merging expects, and how its clusters are.

    Parameters
    ----------
    data, share, seed, features, folder
        As in `kept_samples`.
    """
    samples, truth = kept_samples(folder, data, share, seed, features)
    labeler = MergeLabeler().fit_tasks(samples)
    return {
        "true_classes": int(truth.max()) + 1,
        "people_differ": labeler.effects_ is not None,
        "expected_ari": labeler.expected_ari_,
    } | scored(truth, labeler.class_labels_)
