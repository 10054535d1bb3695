"""Measure how good labels of tasks of several data sets are, in all and within each of them."""

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from mela.data.array_types import Ints
from mela.data.sampling import draw_split
from mela.evaluation.label_scores import majority_accuracy
from mela.io import schemas, store
from mela.io.checked_tables import read_manifest, read_truth
from mela.io.feature_tables import read_features
from mela.labeling.labeler_choice import build_labeler
from mela.labeling.task_classes import manifest_samples
from mela.params import PARAMS, LabelerParams, TaskParams
from stages.common import paths
from studies.labels.quality import LABELERS


def measure(*, data: str, seed: int, tasks: str, labeler: str, projects: Path) -> list[dict[str, Any]]:
    """Return how good labels of a labeler are on the features of a pipeline, for all tasks and those of each data set.

    Parameters
    ----------
    data : str
        The pipeline ran in the folder DATA_SEED of `projects`.
    seed : int
    tasks : str
        repl: the pipeline's own training tasks; once: tasks without replacement from the same images.
    labeler : str
        One of `studies.labels.quality.LABELERS`.
    projects : Path
    """
    run = projects / f"{data}_{seed}"
    ids, vectors = read_features(run / paths.FEATURES)
    known = read_truth(run / paths.TRUTH)
    manifest = read_manifest(run / paths.TRAIN) if tasks == "repl" else once(run, known[known["image_id"].isin(ids)])
    samples = manifest_samples(manifest, ids, vectors)
    own = known.set_index("image_id").loc[ids[samples.index[samples.first]]]
    given = LabelerParams.read(run / PARAMS)
    n_clusters = min(given.n_clusters, len(own))
    found = build_labeler(**LABELERS[labeler], n_clusters=n_clusters, random_state=given.seed).fit_tasks(samples)
    every = rows(own["class"].to_numpy(str), own["dataset"].to_numpy(str), found.class_labels_)
    return [row | {"tasks": tasks, "labeler": labeler} for row in every]


def once(run: Path, known: pd.DataFrame) -> pd.DataFrame:
    """Draw as many training tasks as there can be if no image is used twice."""
    index = store.read_table(run / paths.INDEX, schemas.INDEX)
    training = known.merge(index[index["split"] == "train"], on="image_id")
    settings = TaskParams.read(run / PARAMS).model_copy(update={"train": None, "replacement": False})
    return draw_split(training, settings, "train")


def rows(classes: Any, datasets: Any, labels: Ints) -> list[dict[str, Any]]:
    """Return a row for all task classes, and one for those of each data set.

    Parameters
    ----------
    classes, datasets : array of str (n,)
        True class and data set of each task class.
    labels : int64 (n,)
        Cluster, or -1.
    """
    found = []
    for name in ("all", *np.unique(datasets)):
        own = (datasets == name) | (name == "all")
        used = own & (labels >= 0)
        row: dict[str, Any] = {"dataset": name, "task_classes": int(own.sum()), "true": len(np.unique(classes[own]))}
        row |= {"clusters": len(np.unique(labels[used])), "clustered": 100 * used.sum() / own.sum()}
        row |= {"accuracy": 100 * majority_accuracy(labels[used], pd.factorize(classes[used])[0])}
        row |= {"ari": float(adjusted_rand_score(classes[used], labels[used]))}
        found.append(row | {"joined": joined(classes[used], labels[used])})
    return found


def joined(classes: Any, labels: Ints, count: int = 3) -> str:
    """Name the pairs of classes that most pairs of task classes in one cluster are of, and how many these are."""
    pairs: Counter[tuple[str, str]] = Counter()
    for label in np.unique(labels):
        of_each = Counter(classes[labels == label].tolist())
        for one, other in combinations(sorted(of_each), 2):
            pairs[one, other] += of_each[one] * of_each[other]
    return "; ".join(f"{one} = {other} ({number})" for (one, other), number in pairs.most_common(count))
