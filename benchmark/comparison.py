"""Accuracies of systems over seeds and test tasks, with intervals, and paired differences of two systems."""

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
    """One system on one data set in one setting, or how far it is from another one.

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
        """Of the mean over seeds and tasks, over tasks: how sure it is what these trained models have on all tasks."""
        return Interval.of(self.accuracies.mean(axis=0))

    @property
    def range(self) -> tuple[float, float]:
        """Mean of the worst and of the best seed: what training makes of chance, which the interval does not cover."""
        means = self.accuracies.mean(axis=1)
        return float(means.min()), float(means.max())

    @property
    def anew(self) -> Interval | None:
        """Of the mean, over seeds as well: how sure it is what trainings with other seeds have. None with one seed.

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
        """Differences on each task from the same seed of the other, of all seeds that both have; None without any.

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


def seeds_of(folder: Path) -> dict[int, Path]:
    """Folders ``seed<n>`` in that of a data set, by their numbers."""
    found = {int(path.name[4:]): path for path in folder.glob("seed*/") if re.fullmatch(r"seed\d+", path.name)}
    return dict(sorted(found.items()))


def read_results(folder: Path, data: str) -> pd.DataFrame:
    """Accuracies of all systems on a data set, by their own rules: columns system, seed, setting, task_id, accuracy.

    Parameters
    ----------
    folder : Path
        With files ``<data>/seed<n>/<system>.parquet``.
    data : str
    """
    return _of_systems(folder / data, ".parquet", store.read_table, schemas.RESULTS)


def read_heads(folder: Path, data: str) -> pd.DataFrame:
    """Means of all systems on a data set by all heads: columns system, seed, head, setting, tasks, mean, ci95.

    Parameters
    ----------
    folder : Path
        With files ``<data>/seed<n>/<system>-heads.csv``.
    data : str
    """
    return _of_systems(folder / data, "-heads.csv", store.read_csv, schemas.HEADS)


def _of_systems(
    folder: Path, suffix: str, read: Callable[[Path, pa.Schema], pd.DataFrame], schema: pa.Schema
) -> pd.DataFrame:
    """Tables of all seeds below each other, with the system and the seed that the files' names say."""
    parts = [
        read(path, schema).assign(system=path.name.removesuffix(suffix), seed=seed)
        for seed, of_seed in seeds_of(folder).items()
        for path in sorted(of_seed.glob(f"*{suffix}"))
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["system", "seed", *schema.names])


def summarize_heads(accuracies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean and 95% interval over tasks of every head and setting.

    Parameters
    ----------
    accuracies : mapping of str to DataFrame
        Of each head, columns setting and accuracy.

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


def measured(results: pd.DataFrame, system: str, setting: str) -> Measured | None:
    """What is known of a system; None if it is not measured.

    Raises
    ------
    MelaError
        Its seeds were not measured on the same tasks.
    """
    rows = results[(results["system"] == system) & (results["setting"] == setting)]
    if rows.empty:
        return None
    wide = rows.pivot(index="seed", columns="task_id", values="accuracy")
    if wide.isna().any(axis=None):
        seeds = ", ".join(str(seed) for seed in wide.index[wide.isna().any(axis=1)])
        raise MelaError(
            f"results of {system}: expected all seeds on the same tasks, got others for {seeds}; rerun them"
        )
    return Measured(accuracies=wide.to_numpy(dtype=np.float64), seeds=wide.index.to_numpy(dtype=np.int64))


def summarize_systems(
    results: pd.DataFrame, systems: Sequence[str], settings: Sequence[str], reference: str
) -> pd.DataFrame:
    """A row for each system and setting that is measured.

    Parameters
    ----------
    results : DataFrame
        Of `read_results`.
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
            if found is None:
                continue
            worst, best = found.range
            difference = None if other is None else found.less(other)
            less = Interval(np.nan, np.nan) if difference is None else difference.interval
            lowest, highest = (np.nan, np.nan) if difference is None else difference.range
            seeds, tasks = found.accuracies.shape
            rows.append(
                {
                    "system": system,
                    "setting": setting,
                    "seeds": seeds,
                    "tasks": tasks,
                    "mean": found.interval.mean,
                    "ci95": found.interval.ci95,
                    "worst_seed": worst,
                    "best_seed": best,
                    "difference": less.mean,
                    "difference_ci95": less.ci95,
                    "difference_lowest_seed": lowest,
                    "difference_highest_seed": highest,
                }
            )
    return pd.DataFrame(rows)
