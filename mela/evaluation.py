"""Meta-test: accuracy of a logistic head on the features of frozen tasks (Eq. 8)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from mela.augmentation import Augmentation
from mela.backbones import Backbone
from mela.episodes import Episode, Episodes
from mela.errors import MelaError
from mela.extraction import extract_features
from mela.logistic import head_accuracy
from mela.scores import Interval

Lookup = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float32]]


def first_shots(task: Episode, shots: int | None) -> npt.NDArray[np.int64] | None:
    """Positions of the first `shots` support images of each class; None where a class has fewer.

    A 1-shot task is thus the 5-shot task with each class's first support image and the same queries. ``shots=None``
    takes the whole support set.
    """
    if shots is None:
        return np.flatnonzero(task.is_support)
    chosen = []
    for label in np.unique(task.labels):
        positions = np.flatnonzero(task.is_support & (task.labels == label))
        if len(positions) < shots:
            return None
        chosen.append(positions[:shots])
    return np.concatenate(chosen)


def settings(tasks: Episodes, shots: Sequence[int]) -> dict[str, int | None]:
    """Settings to evaluate: ``k_shot`` for each k, and ``all_shots`` where some task has another number."""
    names: dict[str, int | None] = {f"{k}_shot": k for k in shots}
    for task in tasks:
        per_class = np.bincount(task.labels[task.is_support])
        if set(per_class.tolist()) != {max(shots)}:
            return names | {"all_shots": None}
    return names


def evaluate_tasks(
    lookup: Lookup, tasks: Episodes, *, shots: Sequence[int], C: float, max_iter: int, copies: Sequence[Lookup] = ()
) -> pd.DataFrame:
    """Accuracy of every task in every setting it allows.

    Parameters
    ----------
    lookup : callable
        int64 (n,) image ids to float32 (n, m) features.
    tasks : Episodes
    shots : sequence of int
        A task counts for k-shot when each of its classes has at least k support images.
    C, max_iter
        See `mela.logistic.head_accuracy`.
    copies : sequence of callable
        Features of augmented copies of the images; with r of them, each setting is evaluated a second time as
        ``k_shot_rx``, where these copies take the place of the support images, as in RFS.

    Returns
    -------
    DataFrame with columns task_id, setting, accuracy (percent)
    """
    # the problems are tiny: more threads than one only wait for each other
    with threadpool_limits(1):
        rows = list(_accuracies(lookup, tasks, shots, C, max_iter, copies))
    return pd.DataFrame(rows, columns=["task_id", "setting", "accuracy"])


def _accuracies(
    lookup: Lookup, tasks: Episodes, shots: Sequence[int], C: float, max_iter: int, copies: Sequence[Lookup]
) -> Iterator[tuple[int, str, float]]:
    named = settings(tasks, shots)
    for task in tasks:
        query = lookup(task.image_ids[~task.is_support])
        query_labels = task.labels[~task.is_support]
        for name, k in named.items():
            support = first_shots(task, k)
            if support is None:
                continue
            ids, labels = task.image_ids[support], task.labels[support]
            for suffix, lookups in [("", [lookup]), (f"_{len(copies)}x", copies)][: 1 + bool(copies)]:
                features = np.concatenate([features_of(ids) for features_of in lookups])
                try:
                    accuracy = head_accuracy(
                        features, np.tile(labels, len(lookups)), query, query_labels, C=C, max_iter=max_iter
                    )
                except RuntimeError as error:
                    raise MelaError(
                        f"evaluate.max_iter: task {task.task_id}, {name}{suffix}: {error}; raise it"
                    ) from None
                yield task.task_id, name + suffix, 100 * accuracy


def evaluate_model(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    tasks: Episodes,
    *,
    shots: Sequence[int],
    C: float,
    max_iter: int,
    copies: int,
    augmentation: Augmentation,
    seed: int,
) -> pd.DataFrame:
    """`evaluate_tasks` for an embedding: features of all images once, and of all support images for each copy.

    Parameters
    ----------
    backbone : Backbone
    images : uint8 (N, h, w, c)
    tasks : Episodes
    shots, C, max_iter
        See `evaluate_tasks`.
    copies : int
        Augmented copies of each support image; above 1, the settings that use them are reported as well.
    augmentation : Augmentation
        Of the copies.
    seed : int
        Of the augmentation.
    """
    generator = torch.Generator().manual_seed(seed)
    plain = _lookup(tasks.image_ids(), extract_features(backbone, images, tasks.image_ids()))
    support = tasks.support_ids()
    augmented = [
        _lookup(support, extract_features(backbone, images, support, lambda batch: augmentation(batch, generator)))
        for _ in range(copies if copies > 1 else 0)
    ]
    return evaluate_tasks(plain, tasks, shots=shots, C=C, max_iter=max_iter, copies=augmented)


def _lookup(image_ids: npt.NDArray[np.int64], features: npt.NDArray[np.float32]) -> Lookup:
    return lambda ids: features[np.searchsorted(image_ids, ids)]


def summarize(accuracies: pd.DataFrame) -> dict[str, Any]:
    """Mean and 95% interval of each model and setting, and of the paired gain of ``mela`` over ``initial``.

    Parameters
    ----------
    accuracies : DataFrame
        Columns task_id, model (``initial`` or ``mela``), setting, accuracy.

    Returns
    -------
    dict
        ``{initial | mela | gain: {setting: {mean, ci95}}, tasks: {setting: number of tasks}}``; a setting with fewer
        than two tasks is left out.
    """
    summary: dict[str, Any] = {"initial": {}, "mela": {}, "gain": {}, "tasks": {}}
    for setting, rows in accuracies.groupby("setting", sort=False):
        wide = rows.pivot(index="task_id", columns="model", values="accuracy")
        if len(wide) < 2:
            continue
        columns = {"initial": wide["initial"], "mela": wide["mela"], "gain": wide["mela"] - wide["initial"]}
        summary["tasks"][str(setting)] = len(wide)
        for name, values in columns.items():
            interval = Interval.of(values.to_numpy(dtype=np.float64))
            summary[name][str(setting)] = {"mean": interval.mean, "ci95": interval.ci95}
    return summary
