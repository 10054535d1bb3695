"""Meta-test: measure a logistic head on the features of frozen tasks (Eq. 8)."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from mela.data.array_types import Floats, Ints
from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes, FlatTasks, TaskGroup
from mela.errors import MelaError
from mela.evaluation.heads import fit_head, l2_normalize
from mela.evaluation.intervals import Interval
from mela.evaluation.unknown import class_cosines
from mela.learners.logistic import fit_heads
from mela.models.backbones import Backbone
from mela.models.features import extract_features
from mela.runtime.progress import SILENT, Watch
from mela.runtime.threads import on_all_threads

Lookup = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float32]]
Rule = Callable[[TaskGroup, str], Ints]
Keep = Callable[[str, TaskGroup, Floats, Floats], object]
KeepTasks = Callable[[TaskGroup, Floats, Floats], object]
Solver = Literal["batched", "sklearn"]

BLOCK_BYTES = 2**23


def settings(tasks: FlatTasks, shots: Sequence[int]) -> dict[str, int | None]:
    """Return the settings to evaluate: ``k_shot`` for each k, and ``all_shots`` if some task has another number."""
    names: dict[str, int | None] = {f"{k}_shot": k for k in shots}
    return names if (tasks.shots() == max(shots)).all() else names | {"all_shots": None}


def require_unseen(tasks: Episodes, training: Episodes, name: str) -> None:
    """Raise MelaError if a task has an image of a training task, which would say nothing about new classes.

    Parameters
    ----------
    tasks, training : Episodes
    name : str
        What errors call the tasks.
    """
    seen = np.intersect1d(tasks.image_ids(), training.image_ids())
    if len(seen):
        task = next(task for task in tasks if np.isin(seen[0], task.image_ids))
        raise MelaError(
            f"{name}: task {task.task_id}: expected images that no training task has, got image {seen[0]} ({len(seen)} "
            "images are in both); rerun the stage manifest"
        )


def evaluate_tasks(
    lookup: Lookup,
    tasks: Episodes,
    *,
    shots: Sequence[int],
    C: float,
    max_iter: int,
    solver: Solver = "batched",
    copies: Lookup | None = None,
    keep: Keep | None = None,
) -> pd.DataFrame:
    """Return the accuracy of every task in every setting, which is a number of shots, that it allows.

    Parameters
    ----------
    lookup : callable
        int64 image ids of any shape to float32 (..., 1, m) features, as the head shall see them (scaled to length 1,
        say).
    tasks : Episodes
        Tasks with support and query images of every class.
    shots : sequence of int
        A task counts for k-shot when each of its classes has at least k support images. The setting ``all_shots`` is
        added if some task has other numbers of them.
    C : float
        Inverse regularisation of the head; see `mela.evaluation.heads.fit_head`.
    max_iter : int
        Iterations of the solver at most.
    solver : {"batched", "sklearn"}
        All tasks at once (`mela.learners.logistic`), or one after the other by scikit-learn.
    copies : callable, optional
        To float32 (..., r, m) features of r augmented copies of the support images. With it each setting is evaluated a
        second time as ``k_shot_rx``, where the copies take the place of the images, as in RFS.
    keep : callable, optional
        Told a setting, some tasks, and of their queries the logits (t, K, q) and the cosines (t, K, q) with class
        means, where copies take no part; threads may call it at once.

    Returns
    -------
    DataFrame with columns task_id, setting, accuracy (percent), one setting after the other
    """

    def rule(support: Lookup) -> Rule:
        def predict(group: TaskGroup, setting: str) -> Ints:
            try:
                own = None if keep is None or support is not lookup else partial(keep, setting)
                return predictions(group, support, lookup, C=C, max_iter=max_iter, solver=solver, keep=own)
            except _NotConvergedError as error:
                task = tasks.task_ids[error.position]
                raise MelaError(
                    f"evaluate.max_iter: task {task}, {setting}: logistic regression did not converge in {max_iter} "
                    f"iterations (C={C:g}); raise it"
                ) from None

        return predict

    names = settings(FlatTasks.of(tasks), shots)
    return task_accuracies(tasks, names, {suffix: rule(own) for suffix, own in variants(lookup, tasks, copies).items()})


def variants(lookup: Lookup, tasks: Episodes, copies: Lookup | None) -> dict[str, Lookup]:
    """Return the lookups of support images by the end of a setting's name: unchanged, and as copies."""
    found = {"": lookup}
    if copies is not None:
        found |= {f"_{copies(tasks.support_ids()[:1]).shape[1]}x": copies}
    return found


def task_accuracies(tasks: Episodes, names: Mapping[str, int | None], rules: Mapping[str, Rule]) -> pd.DataFrame:
    """Return the accuracy of every task in every setting it allows, by every rule.

    Parameters
    ----------
    tasks : Episodes
    names : mapping of str to int or None
        Names of settings, and their shots; None takes all support images of a class.
    rules : mapping of str to callable
        By the end that the names of their settings have. A rule gets tasks of one shape and the name of the setting,
        and returns predicted labels (t, q).

    Returns
    -------
    DataFrame with columns task_id, setting, accuracy (percent), one setting after the other
    """
    every, parts = FlatTasks.of(tasks), []
    for name, k in names.items():
        groups = (every if k is None else every.first_shots(k)).groups()
        for suffix, predict in rules.items():
            shares = np.full(len(tasks), np.nan)
            for group in groups:
                right = predict(group, name + suffix) == group.query_labels
                shares[group.positions] = 100 * right.mean(axis=1)
            found = np.flatnonzero(~np.isnan(shares))
            part = {"task_id": tasks.task_ids[found], "setting": name + suffix, "accuracy": shares[found]}
            parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)


class _NotConvergedError(Exception):
    """Say that the head of the task at a position did not converge."""

    def __init__(self, position: int) -> None:
        self.position = position


def predictions(
    group: TaskGroup,
    support: Lookup,
    query: Lookup,
    *,
    C: float,
    max_iter: int,
    solver: Solver,
    keep: KeepTasks | None = None,
) -> Ints:
    """Predict labels (t, q) of tasks of one shape.

    Parameters
    ----------
    group : TaskGroup
    support, query : callable
        Features of the support images (..., r, m), r times each, and of the query images (..., 1, m).
    C, max_iter, solver
        See `evaluate_tasks`.
    keep : callable, optional
        Told some of the tasks, and of their queries the logits (t, K, q) and the cosines (t, K, q) with class means.
    """
    predict = _predict_batched if solver == "batched" else _predict_each
    return predict(group, support, query, C, max_iter, keep)


def support_of(group: TaskGroup, lookup: Lookup) -> tuple[npt.NDArray[np.float32], Ints]:
    """Return features (t, n r, m) and labels (t, n r) of the support images, r copies of each side by side."""
    features = lookup(group.support)
    t, n, r, m = features.shape
    return features.reshape(t, n * r, m), group.support_labels.repeat(r, axis=1)


def _predict_batched(
    group: TaskGroup, support: Lookup, query: Lookup, C: float, max_iter: int, keep: KeepTasks | None
) -> Ints:
    def predict(part: TaskGroup) -> Ints:
        features, labels = support_of(part, support)
        heads = fit_heads(features, labels, part.ways, C=C, max_iter=max_iter)
        if not heads.converged.all():
            raise _NotConvergedError(int(part.positions[heads.converged.argmin()]))
        asked = query(part.query)[:, :, 0]
        logits = heads.logits(asked)
        if keep is not None:
            keep(part, logits, class_cosines(features, labels, asked, part.ways))
        return logits.argmax(axis=1)

    _, n, m = support_of(group[:1], support)[0].shape
    size = max(1, BLOCK_BYTES // (4 * m * (n + group.query.shape[1]) + 8 * n**2))
    blocks = [group[start : start + size] for start in range(0, len(group), size)]
    return np.concatenate(on_all_threads(predict, blocks))


def _predict_each(
    group: TaskGroup, support: Lookup, query: Lookup, C: float, max_iter: int, keep: KeepTasks | None
) -> Ints:
    from sklearn.exceptions import ConvergenceWarning

    predicted = np.empty(group.query.shape, dtype=np.int64)
    with threadpool_limits(1):
        for i in range(len(group)):
            one = group[i : i + 1]
            (features,), (labels,) = support_of(one, support)
            try:
                head = fit_head(features, labels, C=C, max_iter=max_iter)
            except ConvergenceWarning:
                raise _NotConvergedError(int(one.positions[0])) from None
            asked = query(one.query)[0, :, 0]
            predicted[i] = head.predict(asked)
            if keep is not None:
                logits = head.decision_function(asked)
                # of two classes it gives the difference alone
                columns = np.stack([np.zeros_like(logits), logits]) if logits.ndim == 1 else logits.T
                cosines = class_cosines(features[None], labels[None], asked[None], one.ways)
                keep(one, columns[None].astype(np.float64), cosines)
    return predicted


def evaluate_model(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    tasks: Episodes,
    *,
    shots: Sequence[int],
    C: float,
    max_iter: int,
    solver: Solver = "batched",
    copies: int,
    augmentation: Augmentation,
    seed: int,
    watch: Watch = SILENT,
    keep: Keep | None = None,
) -> pd.DataFrame:
    """Compute features of all images and of augmented support images, and return what `evaluate_tasks` does.

    Parameters
    ----------
    backbone : Backbone
    images : uint8 (N, h, w, c)
    tasks : Episodes
    shots, C, max_iter, solver
        See `evaluate_tasks`.
    copies : int
        Augmented copies of each support image; above 1, settings with them (``1_shot_5x``) are measured as well.
    augmentation : Augmentation
        Changes of the copies; surroundings are left out.
    seed : int
        Seed of the augmentation.
    watch : Watch
        Counts images.
    keep : callable, optional
        See `evaluate_tasks`.
    """
    plain, augmented = feature_lookups(
        backbone, images, tasks, copies=copies, augmentation=augmentation, seed=seed, watch=watch
    )
    return evaluate_tasks(plain, tasks, shots=shots, C=C, max_iter=max_iter, solver=solver, copies=augmented, keep=keep)


def feature_lookups(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    tasks: Episodes,
    *,
    copies: int,
    augmentation: Augmentation,
    seed: int,
    watch: Watch = SILENT,
) -> tuple[Lookup, Lookup | None]:
    """Return features of length 1 of all images of tasks, and of augmented copies of support images (if > 1)."""
    plain = unit_lookup(tasks.image_ids(), extract_features(backbone, images, tasks.image_ids(), watch=watch)[:, None])
    if copies == 1:
        return plain, None
    augmentation = augmentation.of_one_image
    generator, support = torch.Generator().manual_seed(seed), tasks.support_ids()
    first = extract_features(backbone, images, support, lambda batch: augmentation(batch, generator), watch=watch)
    augmented = np.empty((len(support), copies, first.shape[1]), dtype=first.dtype)
    augmented[:, 0] = first
    for copy in range(1, copies):
        augmented[:, copy] = extract_features(
            backbone, images, support, lambda batch: augmentation(batch, generator), watch=watch
        )
    return plain, unit_lookup(support, augmented)


def unit_lookup(image_ids: npt.NDArray[np.int64], features: npt.NDArray[np.float32]) -> Lookup:
    """Return a lookup of features (n, r, m), scaled to length 1, of images (n,) in rising order."""
    n, r, m = features.shape
    normalised = l2_normalize(features.reshape(n * r, m)).reshape(n, r, m)
    return lambda ids: normalised[np.searchsorted(image_ids, ids)]


def summarize(accuracies: pd.DataFrame, manifest: pd.DataFrame | None = None) -> dict[str, Any]:
    """Return mean and 95% interval of each model and setting, and of differences between models on the same tasks.

    Parameters
    ----------
    accuracies : DataFrame
        Columns task_id, model (``initial`` and others), setting, accuracy.
    manifest : DataFrame, optional
        The tasks, by task_id; with the column ``dataset`` where there are several data sets.

    Returns
    -------
    dict
        ``tasks``: number of tasks by setting; ``accuracy``, ``gain`` over ``initial`` and ``to_oracle``, the difference
        to ``oracle`` where that is a model: ``{model: {setting: {mean, ci95}}}``. A setting with fewer than two tasks
        is left out. With several data sets, ``datasets`` has the same for each, by its name.
    """
    models = list(accuracies["model"].unique())
    others = [name for name in models if name != "initial"]
    inferred = [name for name in others if name != "oracle"] if "oracle" in others else []
    wanted = {"accuracy": (models, None), "gain": (others, "initial"), "to_oracle": (inferred, "oracle")}
    summary: dict[str, Any] = {"tasks": {}} | {key: {name: {} for name in names} for key, (names, _) in wanted.items()}
    for setting, rows in accuracies.groupby("setting", sort=False):
        wide = rows.pivot(index="task_id", columns="model", values="accuracy")
        if len(wide) < 2:
            continue
        summary["tasks"][str(setting)] = len(wide)
        for key, (names, reference) in wanted.items():
            for name in names:
                values = wide[name] if reference is None else wide[name] - wide[reference]
                interval = Interval.of(values.to_numpy(dtype=np.float64))
                summary[key][name][str(setting)] = {"mean": interval.mean, "ci95": interval.ci95}
    if manifest is not None and "dataset" in manifest:
        dataset_of = manifest.drop_duplicates("task_id").set_index("task_id")["dataset"]
        parts = accuracies.groupby(accuracies["task_id"].map(dataset_of))
        summary["datasets"] = {str(name): summarize(part) for name, part in parts}
    return summary
