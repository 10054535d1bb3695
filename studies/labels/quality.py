"""Measure how good inferred labels are: by labeler, by samples per task class, and pass by pass of pruning."""

import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import pair_confusion_matrix

from mela.blocks import read_yaml
from mela.data.array_types import Ints
from mela.evaluation.label_scores import majority_accuracy
from mela.io import schemas, store
from mela.io.checked_tables import read_manifest
from mela.io.feature_tables import read_features
from mela.labeling.centroids import Centroids, norms
from mela.labeling.diagnostics import label_metrics
from mela.labeling.labeler_choice import build_labeler
from mela.labeling.pair_quality import pair_quality
from mela.labeling.pruning import run_pass
from mela.labeling.task_classes import TaskSamples, class_means, manifest_samples
from mela.labeling.task_labeler import TaskLabeler
from mela.params import PARAMS, LabelerParams
from stages.common import paths
from studies.cells import Cell, true_classes

# labelers and their settings, by their names in tables
LABELERS: dict[str, dict[str, Any]] = read_yaml(Path(__file__).with_name("grid.yaml"))["keys"]["labeler"]


@lru_cache(maxsize=1)
def material(folder: Path, data: str, seed: int, tasks: str, embedding: str) -> tuple[Cell, TaskSamples, Ints]:
    """Return a cell, its training tasks with features, and the true class of each task class."""
    cell = Cell.of(folder, data, seed)
    samples = cell.samples(embedding, tasks)
    return cell, samples, cell.true_classes(samples)


def scores(found: TaskLabeler, truth: Ints) -> dict[str, Any]:
    """Return clusters, accuracy and ARI over clustered task classes, and what is estimated without the truth."""
    used = found.class_labels_ >= 0
    labels, known = found.class_labels_[used], truth[used]
    agreement = {"accuracy": 100 * majority_accuracy(labels, known), "ari": float(adjusted_rand_score(known, labels))}
    return {"clusters": len(np.unique(labels)), **agreement, **label_metrics(found)}


def labelers(
    *,
    data: str,
    seed: int,
    tasks: str,
    embedding: str,
    labeler: str,
    settings: dict[str, Any],
    folder: Path,
    root: list[str],
) -> dict[str, Any]:
    """Return how good a labeler's labels are on a cell, which is made first; `root` is NAME=FOLDER."""
    roots = {"glyphs": "data/raw/glyphs"} | dict(item.split("=", 1) for item in root)
    Cell.of(folder, data, seed).make(Path(roots.get(data, "")))
    cell, samples, truth = material(folder, data, seed, tasks, embedding)
    row: dict[str, Any] = {"validation": round(cell.validation(embedding), 1)}
    return row | labels_row(settings, samples, truth, cell.recipe.n_clusters, seed)


def labels_row(
    settings: dict[str, Any], samples: TaskSamples, truth: Ints, n_clusters: int, seed: int
) -> dict[str, Any]:
    """Fit a labeler and return how good its labels are, or the error; `n_clusters` is where pruning starts."""
    frequencies = np.unique(truth, return_counts=True)[1]
    row: dict[str, Any] = {"true": len(frequencies)}
    row |= {"rarest": int(frequencies.min()), "most_frequent": int(frequencies.max())}
    start = time.perf_counter()
    try:
        n_clusters = min(n_clusters, len(truth))
        found = build_labeler(**settings, n_clusters=n_clusters, random_state=seed).fit_tasks(samples)
    except ValueError as error:
        return row | {"error": str(error)}
    row |= {"seconds": round(time.perf_counter() - start, 1)}
    row |= {"accuracy_all": round(100 * majority_accuracy(found.class_clusters_, truth), 2)}
    return row | {name: round(value, 4 if name == "ari" else 2) for name, value in scores(found, truth).items()}


def of_a_run(*, data: str, labeler: str, projects: Path) -> dict[str, Any]:
    """Return how good the labels of a labeler are on the features of a pipeline that ran in a folder of its own."""
    run = projects / data
    ids, vectors = read_features(run / paths.FEATURES)
    samples = manifest_samples(read_manifest(run / paths.TRAIN), ids, vectors)
    truth = true_classes(store.read_table(run / paths.TRUTH, schemas.TRUTH), ids, samples)
    given = LabelerParams.read(run / PARAMS)
    return labels_row(LABELERS[labeler], samples, truth, given.n_clusters, given.seed)


def first_samples(samples: TaskSamples, count: int) -> TaskSamples:
    """Return the first `count` samples of each task class, in a new order of their own."""
    kept = (samples.first[:, None] + np.arange(count)).ravel()
    return replace(samples, index=samples.index[kept], classes=samples.classes[kept], order=np.arange(len(kept)))


def samples(
    *, data: str, seed: int, embedding: str, samples: int, labeler: str, settings: dict[str, Any], folder: Path
) -> dict[str, Any]:
    """Return how good labels are with so many samples of each task class."""
    cell, whole, truth = material(folder, data, seed, "once", embedding)
    n_clusters = min(cell.recipe.n_clusters, len(truth))
    found = build_labeler(**settings, n_clusters=n_clusters, random_state=seed, soft=True)
    return scores(found.fit_tasks(first_samples(whole, samples)), truth)


def means_by_samples(table: pd.DataFrame) -> None:
    """Print means over the seeds."""
    groups = table.groupby(["data", "embedding", "samples", "labeler"])
    print(groups[["clusters", "accuracy", "ari", "tasks_clustered", "certainty"]].mean().round(3).to_string())


def true_pairs(clusters: Ints, truth: Ints) -> tuple[float, float]:
    """Return the pair precision, and the index of Fowlkes and Mallows."""
    (_, wrong), (missed, both) = pair_confusion_matrix(truth, clusters).astype(np.float64)
    return float(both / (both + wrong)), float(both / np.sqrt((both + wrong) * (both + missed)))


def passes(*, data: str, seed: int, embedding: str, q: float, folder: Path) -> list[dict[str, Any]]:
    """Return each pass of Algorithm 2 to the letter, until fewer clusters are left than a task has classes."""
    cell, samples, truth = material(folder, data, seed, "repl", embedding)
    classes, generator = class_means(samples), np.random.default_rng(seed)
    order = generator.permutation(len(classes.ways))
    centroids = classes.means[generator.permutation(len(classes.means))[: cell.recipe.n_clusters]]
    radius, rows = float(norms(classes.means).max()), []
    for number in range(1, 100):
        moving = Centroids(centroids, radius)
        weights, counts = np.ones(len(moving)), np.zeros(len(moving), dtype=np.int64)
        matched, found = run_pass(classes.means, classes.sizes, classes.starts, order, moving, weights, counts)
        quality, (precision, index) = pair_quality(found, classes.starts), true_pairs(found, truth)
        row = {"true_precision": precision, "precision": quality.precision, "match": quality.match}
        row |= {"precision_error": quality.precision_error, "true_index": index}
        rows.append({"pass": number, "clusters": len(moving), **{name: round(row[name], 4) for name in row}})
        share = classes.ways[matched] / len(moving)
        keep = counts >= max(counts.mean() - q * np.sqrt((share * (1 - share)).sum()), 1)
        if keep.all() or keep.sum() < classes.ways.max():
            return rows
        centroids = moving.points[keep]
    return rows


def summary_of_passes(table: pd.DataFrame) -> None:
    """Print how often the pass with the best estimate is the best, and how far estimates are off."""
    runs = table.groupby(["data", "seed", "embedding", "q"])
    by_match, by_truth = table.loc[runs["match"].idxmax()], table.loc[runs["true_index"].idxmax()]
    lost = by_truth["true_index"].to_numpy() - by_match["true_index"].to_numpy()
    last = by_truth["true_index"].to_numpy() - table.loc[runs["pass"].idxmax(), "true_index"].to_numpy()
    error = (table["precision"] - table["true_precision"]).abs()
    print(f"{runs.ngroups} runs, {len(table)} passes; {(lost == 0).sum()} times the pass of the best match is the best")
    print(f"index lost by it: mean {lost.mean():.3f}, most {lost.max():.3f}; by the last pass: {last.mean():.3f}")
    print(f"estimated and true precision differ by {error.mean():.3f} on average, {error.max():.3f} at most")
