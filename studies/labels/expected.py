"""Compare what merging can tell of its labels without the truth with their true Rand index, where people differ."""

from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.metrics import adjusted_rand_score

from mela.data.array_types import Ints
from mela.errors import MelaError
from mela.io.checked_tables import read_manifest, read_truth
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.task_classes import TaskSamples
from mela.labeling.training_samples import read_samples
from mela.params import RoundName
from stages.common import paths
from stages.common.round_files import BEFORE_ROUNDS, round_files
from studies.cells import true_classes
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
    return samples_of_round(run, features)


def samples_of_round(run: Path, features: str) -> tuple[TaskSamples, Ints]:
    """Return the same of the folder of any run."""
    files = BEFORE_ROUNDS if features == "initial" else round_files(cast(RoundName, features))
    looks = None if files.looks is None else run / files.looks
    samples, known = read_samples(
        read_manifest(run / paths.TRAIN), run / files.features, looks, run / paths.TASK_SOURCES
    )
    return samples, true_classes(read_truth(run / paths.TRUTH), known, samples)


def scored(truth: Ints, labels: Ints) -> dict[str, Any]:
    """Return the number of clusters and the adjusted Rand index; a task class without a cluster (-1) is alone."""
    alone = labels < 0
    clusters = np.where(alone, labels.max() + np.cumsum(alone), labels)
    return {"clusters": len(np.unique(clusters)), "ari": float(adjusted_rand_score(truth, clusters))}


def wrong_pairs(clusters: Ints, truth: Ints, starts: Ints) -> tuple[float, float]:
    """Return which share of the pairs of different classes is in one cluster: inside tasks, and between them.

    Clusters (n,) may hold classes of one task; -1 is alone.
    """
    task = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    one, other = np.triu_indices(len(truth), 1)
    joined = (clusters[one] == clusters[other]) & (clusters[one] >= 0)
    different, inside = truth[one] != truth[other], task[one] == task[other]
    return float(joined[different & inside].mean()), float(joined[different & ~inside].mean())


def measure(*, data: str, share: float | None, seed: int, features: str, folder: Path) -> dict[str, Any]:
    """Return what merging can tell of its clusters, and how they are.

    Parameters
    ----------
    data, share, seed, features, folder
        As in `kept_samples`.
    """
    samples, truth = kept_samples(folder, data, share, seed, features)
    labeler = MergeLabeler().fit_tasks(samples)
    effects = labeler.effects_
    inside, between = (None, None) if effects is None else wrong_pairs(effects.cut, truth, samples.starts)
    return {
        "true_classes": int(truth.max()) + 1,
        "wrong_inside": inside,
        "wrong_between": between,
        "people_differ": effects is not None,
        "expected_ari": labeler.expected_ari_,
        "match": labeler.pair_quality_.match,
        "match_error": labeler.pair_quality_.match_error,
    } | scored(truth, labeler.class_labels_)
