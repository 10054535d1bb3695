"""Group samples of independently labelled tasks by task and local label, and average each group."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from mela.data.array_types import Floats, Ints
from mela.errors import MelaError
from mela.labeling.name_checks import require_names, require_one_type

BLOCK_SAMPLES = 4096
Value = TypeVar("Value", bound=np.generic)


@dataclass(frozen=True, kw_only=True)
class TaskSamples:
    """Hold samples sorted by task and local label; a task class is what one local label of one task names.

    Attributes
    ----------
    features : float (n_rows, m)
        One row may serve many samples, since an image can occur in many tasks; never copied as a whole.
    index : int64 (n_samples,)
        Row of `features` of each sample.
    classes : int64 (n_samples,)
        Task class of each sample, rising from 0.
    order : int64 (n_samples,)
        Position of each sample in the caller's order.
    task_ids, local_labels : (n_classes,)
        Names of the task and of the local label of each task class; a task's classes are adjacent.
    looks : float64 (m, m), optional
        Covariance of a task class's mean under looks of other people (`mela.models.looks`), if it is known.
    sources : int64 (n_tasks,), optional
        Person, or other source, that each task comes from, from 0, if that is known and there are several.
    written : (n_classes,), optional
        What people call each task class, as text, if it is evidence (`mela.labeling.named_clusters`).
    """

    features: npt.NDArray[Any]
    index: Ints
    classes: Ints
    order: Ints
    task_ids: npt.NDArray[Any]
    local_labels: npt.NDArray[Any]
    looks: Floats | None = None
    sources: Ints | None = None
    written: npt.NDArray[Any] | None = None

    @property
    def sizes(self) -> Ints:
        """Samples per task class (n_classes,), I in Eq. 12-13."""
        return np.bincount(self.classes).astype(np.int64)

    @property
    def starts(self) -> Ints:
        """Bounds of the tasks (n_tasks + 1,): task t holds the classes ``starts[t]`` to ``starts[t + 1] - 1``."""
        changes = np.flatnonzero(self.task_ids[1:] != self.task_ids[:-1]) + 1
        return np.concatenate([[0], changes, [len(self.task_ids)]]).astype(np.int64)

    @property
    def names(self) -> list[tuple[Any, Any]]:
        """Task and local label of each task class (n_classes,)."""
        return list(zip(self.task_ids.tolist(), self.local_labels.tolist(), strict=True))

    @property
    def first(self) -> Ints:
        """Positions in `index` at which the task classes begin (n_classes,)."""
        return np.flatnonzero(np.diff(self.classes, prepend=-1))

    def spread(self, values: Ints) -> Ints:
        """Return the values (n_classes,) of the task classes for all samples, in the caller's order (n_samples,)."""
        return self.in_given_order(values[self.classes])

    def in_given_order(self, values: npt.NDArray[Value]) -> npt.NDArray[Value]:
        """Return the values (n_samples,) of the samples in the caller's order (n_samples,)."""
        found = np.empty_like(values)
        found[self.order] = values
        return found

    def some(self, tasks: npt.NDArray[np.bool_]) -> "TaskSamples":
        """Return the samples of some of the tasks (n_tasks,), as if there were no others."""
        kept = np.repeat(tasks, np.diff(self.starts))
        own = kept[self.classes]
        sources = None if self.sources is None else np.unique(self.sources[tasks], return_inverse=True)[1]
        return replace(
            self,
            index=self.index[own],
            classes=(np.cumsum(kept) - 1)[self.classes[own]],
            order=np.arange(own.sum()),
            task_ids=self.task_ids[kept],
            local_labels=self.local_labels[kept],
            # a single source, 0, tells nothing
            sources=sources if sources is not None and sources.any() else None,
            written=None if self.written is None else self.written[kept],
        )

    def blocks(self) -> Iterator[tuple[Floats, Ints]]:
        """Yield features (b, m) and task classes (b,) of some 4,000 samples at a time; no class is split."""
        bounds = np.concatenate([[0], np.cumsum(self.sizes)])
        start = 0
        while start < len(self.index):
            end = int(bounds[np.searchsorted(bounds, start + BLOCK_SAMPLES, side="right") - 1])
            if end <= start:
                end = int(bounds[np.searchsorted(bounds, start, side="right")])
            yield self.features[self.index[start:end]].astype(np.float64), self.classes[start:end]
            start = end


def group_samples(
    features: npt.NDArray[Any], index: Ints, tasks: npt.NDArray[Any], labels: npt.NDArray[Any]
) -> TaskSamples:
    """Sort samples by task and local label.

    Parameters
    ----------
    features : float (n_rows, m)
    index : int64 (n_samples,)
        Row of each sample.
    tasks, labels : (n_samples,)
        Task and local label of each sample, of any kind that can be sorted.

    Raises
    ------
    MelaError
        A task or a local label is missing, or they are of types that cannot be sorted together.
    """
    require_names(tasks, "tasks")
    require_names(labels, "local labels")
    task_names, task_codes = np.unique(tasks, return_inverse=True)
    label_names, label_codes = np.unique(labels, return_inverse=True)
    keys = task_codes.astype(np.int64) * len(label_names) + label_codes
    order = np.argsort(keys, kind="stable")
    found, classes = np.unique(keys[order], return_inverse=True)
    return TaskSamples(
        features=features,
        index=index[order],
        classes=classes.astype(np.int64),
        order=order.astype(np.int64),
        task_ids=task_names[found // len(label_names)],
        local_labels=label_names[found % len(label_names)],
    )


def with_sources(samples: TaskSamples, sources: npt.ArrayLike) -> TaskSamples:
    """Return the samples with the source of each task, by that of each sample.

    Parameters
    ----------
    samples : TaskSamples
    sources : array-like (n_samples,)
        In the caller's order, of any kind that can be sorted.

    Raises
    ------
    MelaError
        There are more or fewer than samples, one is missing, they are of types that cannot be sorted together, or
        samples of a task have different ones.
    """
    names, codes = np.unique(_of_samples(sources, "sources", samples), return_inverse=True)
    task = np.repeat(np.arange(len(samples.starts) - 1), np.diff(samples.starts))[samples.classes]
    # samples are sorted by task
    first = codes[np.flatnonzero(np.diff(task, prepend=-1))]
    other = codes != first[task]
    if other.any():
        row = int(other.argmax())
        raise MelaError(
            f"sources: expected one source for all samples of task {samples.task_ids[samples.classes[row]]}, got "
            f"{names[first[task[row]]]} and {names[codes[row]]}; give each task one source"
        )
    # what all tasks have in common tells nothing
    return replace(samples, sources=first.astype(np.int64) if len(names) > 1 else None)


def with_written(samples: TaskSamples, names: npt.ArrayLike) -> TaskSamples:
    """Return the samples with the name of each task class, by that of each sample.

    Parameters
    ----------
    samples : TaskSamples
    names : array-like (n_samples,)
        In the caller's order, of any kind; they are taken as text.

    Raises
    ------
    MelaError
        There are more or fewer than samples, one is missing, or samples of a task class have different ones.
    """
    given = _of_samples(names, "names", samples)
    first = given[samples.first]
    other = given != first[samples.classes]
    if other.any():
        row = int(other.argmax())
        task, label = samples.names[samples.classes[row]]
        both = f"{str(first[samples.classes[row]])!r} and {str(given[row])!r}"
        raise MelaError(
            f"names: expected one name for all samples of the label {label} of task {task}, got {both}; give each "
            "local label one name"
        )
    return replace(samples, written=first.astype(str))


def _of_samples(given: npt.ArrayLike, what: str, samples: TaskSamples) -> npt.NDArray[Any]:
    """Return what is given for each sample, in the order of the samples; raise MelaError if it is not one for each."""
    # packages that take long to import are not needed to import an estimator
    from sklearn.utils.validation import column_or_1d

    require_one_type(given, what)
    values: npt.NDArray[Any] = column_or_1d(given)
    if len(values) != len(samples.order):
        raise MelaError(
            f"X and {what} have {len(samples.order)} and {len(values)} entries; give one of {what} for each row of X"
        )
    require_names(values, what)
    return values[samples.order]


def manifest_samples(
    manifest: pd.DataFrame,
    image_ids: npt.NDArray[np.int64],
    features: npt.NDArray[np.float32],
    looks: Floats | None = None,
) -> TaskSamples:
    """Return the samples of a manifest.

    Parameters
    ----------
    manifest : DataFrame
        Columns task_id, image_id, local_label, one row per sample.
    image_ids : int64 (n_images,)
    features : float32 (n_images, m)
    looks : float64 (m, m), optional
        See `TaskSamples`.

    Raises
    ------
    MelaError
        The manifest is empty or names an image without features.
    """
    if manifest.empty:
        raise MelaError("train manifest: it has no task; add training tasks and rerun the stage manifest")
    index = pd.Index(image_ids).get_indexer(pd.Index(manifest["image_id"]))
    if (index < 0).any():
        missing = manifest["image_id"].iloc[int(np.argmin(index))]
        raise MelaError(
            f"features: expected one for every image of the manifest, found none for image {missing}; rerun extract"
        )
    tasks, labels = manifest["task_id"].to_numpy(), manifest["local_label"].to_numpy()
    return replace(group_samples(features, index.astype(np.int64), tasks, labels), looks=looks)


@dataclass(frozen=True, kw_only=True)
class ClassMeans:
    """Hold the classes of all tasks, sorted by task and local label.

    Attributes
    ----------
    task_ids : (n,)
        Name of the task of each class; rows of a task are adjacent.
    starts : int64 (n_tasks + 1,)
        Task t holds the rows ``starts[t]`` to ``starts[t + 1] - 1``.
    means : float64 (n, m)
        Mean feature of a task class over its support and query samples, the inner sum of Eq. 12.
    sizes : int64 (n,)
        Samples per task class, I in Eq. 12-13.
    sources : int64 (n_tasks,), optional
        As in `TaskSamples`.
    """

    task_ids: npt.NDArray[Any]
    starts: npt.NDArray[np.int64]
    means: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.int64]
    sources: Ints | None = None

    @property
    def ways(self) -> npt.NDArray[np.int64]:
        """Classes of each task (n_tasks,)."""
        return np.diff(self.starts)

    @property
    def of_sources(self) -> npt.NDArray[np.int64] | None:
        """Source of each task class (n,), if it is known."""
        return None if self.sources is None else np.repeat(self.sources, self.ways)

    @property
    def widest(self) -> Any:
        """Name of the task with the most ways."""
        return self.task_ids[self.starts[int(self.ways.argmax())]]


def class_means(samples: TaskSamples) -> ClassMeans:
    """Average the features of each task class."""
    sizes = samples.sizes
    means = np.empty((len(sizes), samples.features.shape[1]), dtype=np.float64)
    for features, classes in samples.blocks():
        first = np.flatnonzero(np.diff(classes, prepend=-1))
        means[classes[first]] = np.add.reduceat(features, first, axis=0) / sizes[classes[first], None]
    return ClassMeans(
        task_ids=samples.task_ids, starts=samples.starts, means=means, sizes=sizes, sources=samples.sources
    )
