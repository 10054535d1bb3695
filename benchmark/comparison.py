"""Compare accuracies of systems over seeds and test tasks, with intervals and paired differences."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from mela.errors import MelaError
from mela.evaluation.intervals import Interval
from mela.io import schemas, store


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Hold one system on one data set in one setting, or how far it is from another one.

    Attributes
    ----------
    accuracies : float64 (n_seeds, n_tasks)
        Percent, or differences of them; tasks in the order of their ids.
    seeds : int64 (n_seeds,)
        Which.
    """

    accuracies: npt.NDArray[np.float64]
    seeds: npt.NDArray[np.int64]

    @property
    def interval(self) -> Interval:
        """95% interval over tasks of the mean over seeds and tasks: what these trained models reach on all tasks."""
        return Interval.of(self.accuracies.mean(axis=0))

    @property
    def range(self) -> tuple[float, float]:
        """Means of the worst and of the best seed: the effect of chance in training, not covered by the interval."""
        means = self.accuracies.mean(axis=1)
        return float(means.min()), float(means.max())

    @property
    def anew(self) -> Interval | None:
        """95% interval over tasks and training seeds; None with one seed.

        Its half-width is those of the interval over tasks and of that over the means of seeds (Student's t), in
        quadrature. What is left of a task's accuracy besides its own mean and the seed's is in both, so that the
        interval is rather too wide: it holds the truth 95 to 99.9 times of 100. Training tasks and test classes are
        the same throughout, and what others would make is not in it.
        """
        if len(self.seeds) == 1:
            return None
        seeds = Interval.of(self.accuracies.mean(axis=1))
        return Interval(seeds.mean, float(np.hypot(seeds.ci95, self.interval.ci95)))

    def less(self, other: "Measured") -> "Measured | None":
        """Return the differences on each task from the other's same seeds, for all seeds of both; None without any.

        Raises
        ------
        MelaError
            They were not measured on the same number of tasks.
        """
        if self.accuracies.shape[1] != other.accuracies.shape[1]:
            found = f"{self.accuracies.shape[1]} and {other.accuracies.shape[1]}"
            raise MelaError(f"results: expected two systems on the same tasks, got {found} tasks; measure both again")
        shared, own, others = np.intersect1d(self.seeds, other.seeds, return_indices=True)
        return (
            Measured(accuracies=self.accuracies[own] - other.accuracies[others], seeds=shared) if len(shared) else None
        )


# of each system and setting: a row for each seed, a column for each task
Results = Mapping[tuple[str, str], pd.DataFrame]


def seeds_of(folder: Path) -> dict[int, Path]:
    """Return the folders ``seed<n>`` in that of a data set, by their numbers."""
    found = {int(path.name[4:]): path for path in folder.glob("seed*/") if re.fullmatch(r"seed\d+", path.name)}
    return dict(sorted(found.items()))


def read_results(folder: Path, data: str) -> Results:
    """Return the accuracies of all systems on a data set, by their own rules.

    Parameters
    ----------
    folder : Path
        Folder with files ``<data>/seed<n>/<system>.parquet``.
    data : str
    """
    return by_setting(_of_systems(folder / data, ".parquet", store.read_table, schemas.RESULTS))


def by_setting(rows: pd.DataFrame) -> Results:
    """Return the accuracies of each system and setting, from columns system, seed, setting, task_id, accuracy."""
    found = {}
    for setting, own in rows.groupby("setting", sort=False):
        table = own.pivot(index=["system", "seed"], columns="task_id", values="accuracy")
        for system, of_system in table.groupby("system"):
            found[str(system), str(setting)] = of_system.droplevel("system").dropna(axis=1, how="all")
    return found


def seeds_by_system(results: Results) -> dict[str, set[int]]:
    """Return the seeds of each system that is measured."""
    seeds: dict[str, set[int]] = {}
    for (system, _), table in results.items():
        seeds.setdefault(system, set()).update(table.index)
    return seeds


def read_heads(folder: Path, data: str) -> pd.DataFrame:
    """Read the means of all systems by all heads: columns system, seed, head, setting, tasks, mean, ci95.

    Parameters
    ----------
    folder : Path
        Folder with files ``<data>/seed<n>/<system>-heads.csv``.
    data : str
    """
    return _of_systems(folder / data, "-heads.csv", store.read_csv, schemas.HEADS)


def _of_systems(
    folder: Path, suffix: str, read: Callable[[Path, pa.Schema], pd.DataFrame], schema: pa.Schema
) -> pd.DataFrame:
    """Concatenate the tables of all seeds, with the system and the seed that the files' names say."""
    names = ["system", "seed"]
    parts = {
        (path.name.removesuffix(suffix), seed): read(path, schema)
        for seed, of_seed in seeds_of(folder).items()
        for path in sorted(of_seed.glob(f"*{suffix}"))
    }
    empty = {("", 0): schema.empty_table().to_pandas()}
    return pd.concat(parts or empty, names=names).reset_index(level=names)


def summarize_heads(accuracies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the mean and 95% interval over tasks of every head and setting.

    Parameters
    ----------
    accuracies : mapping of str to DataFrame
        For each head, columns setting and accuracy.

    Returns
    -------
    DataFrame with columns head, setting, tasks, mean, ci95
    """
    rows = []
    for head, table in accuracies.items():
        for setting, values in table.groupby("setting", sort=False)["accuracy"]:
            interval = Interval.of(values.to_numpy(dtype=np.float64))
            rows.append((head, setting, len(values), interval.mean, interval.ci95))
    return pd.DataFrame(rows, columns=schemas.HEADS.names)


def measured(results: Results, system: str, setting: str) -> Measured | None:
    """Return what is known of a system; None if it is not measured.

    Raises
    ------
    MelaError
        Its seeds were not measured on the same tasks.
    """
    table = results.get((system, setting))
    if table is None:
        return None
    accuracies = table.to_numpy(dtype=np.float64)
    if len(others := table.index[np.isnan(accuracies).any(axis=1)]):
        seeds = ", ".join(map(str, others))
        raise MelaError(
            f"results of {system}: expected all seeds on the same tasks, got others for {seeds}; rerun them"
        )
    return Measured(accuracies=accuracies, seeds=table.index.to_numpy(dtype=np.int64))


def summarize_systems(
    results: Results, systems: Sequence[str], settings: Sequence[str], reference: str
) -> pd.DataFrame:
    """Return a row for each system and setting that is measured.

    Parameters
    ----------
    results : mapping of (system, setting) to DataFrame
        Result of `read_results`.
    systems, settings : sequence of str
    reference : str
        The system that the differences are from, over the seeds that both have.

    Returns
    -------
    DataFrame with columns system, setting, seeds, tasks, mean, ci95, worst_seed, best_seed, difference,
    difference_ci95, difference_lowest_seed, difference_highest_seed
    """
    rows = []
    for setting in settings:
        other = measured(results, reference, setting)
        for system in systems:
            found = measured(results, system, setting)
            if found is not None:
                less = None if other is None else found.less(other)
                rows.append((system, setting, *found.accuracies.shape, *_summary(found), *_summary(less)))
    parts = ("difference", "difference_ci95", "difference_lowest_seed", "difference_highest_seed")
    names = ("system", "setting", "seeds", "tasks", "mean", "ci95", "worst_seed", "best_seed", *parts)
    return pd.DataFrame(rows, columns=names)


def _summary(found: Measured | None) -> tuple[float, float, float, float]:
    """Return the mean, its interval over tasks, and the means of the lowest and of the highest seed."""
    if found is None:
        return (np.nan, np.nan, np.nan, np.nan)
    return (found.interval.mean, found.interval.ci95, *found.range)
