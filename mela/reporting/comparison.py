"""Compare the accuracies of two runs, on the same test tasks where they have these in common."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ruamel.yaml import YAML

from mela.errors import MelaError
from mela.evaluation.intervals import Interval
from mela.io import schemas, store
from mela.params import by_todays_names
from mela.reporting.summary import NAMES, Table

PER_TASK, TEST, PARAMS = Path("results/evaluate/per_task.parquet"), Path("data/manifest/test.parquet"), "params.yaml"
# what a comparison reads of a run
FILES = (str(PER_TASK), str(TEST), PARAMS)
MISSING = "not given"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Hold what a run has measured.

    Attributes
    ----------
    accuracies : DataFrame
        Columns as `mela.io.schemas.ACCURACIES`; those of test tasks.
    tasks : bytes
        The file of the test tasks.
    params : mapping
        All parameters.
    """

    accuracies: pd.DataFrame
    tasks: bytes
    params: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path, results: Path | None = None) -> "Measured":
        """Read those of the run in a folder, whose parameters need not be of this version.

        Parameters
        ----------
        folder : Path
        results : Path, optional
            Where its results are, if not in its folder ``results``.

        Raises
        ------
        MelaError
            A file is missing or damaged.
        """
        per_task = (folder / "results" if results is None else results) / PER_TASK.relative_to("results")
        for path in (per_task, folder / TEST, folder / PARAMS):
            if not path.is_file():
                raise MelaError(f"{path}: no such file; run `dvc repro` there, or `dvc pull` what it has made")
        found = store.read_table(per_task, schemas.ACCURACIES)
        params = YAML(typ="safe").load(folder / PARAMS)
        return cls(
            accuracies=found[found["split"] == "test"].drop(columns="split"),
            tasks=(folder / TEST).read_bytes(),
            params=by_todays_names(params) if isinstance(params, dict) else {},
        )

    def has_tasks_of(self, other: "Measured") -> bool:
        """Return whether both were tested on the same images in the same tasks."""
        return self.tasks == other.tasks and self.params.get("data") == other.params.get("data")


def accuracies_of_two(one: Measured, other: Measured, name: str) -> Table:
    """Return the accuracies of two runs, and the differences of embeddings that both have, with 95% intervals.

    If both were tested on the same tasks, differences are paired: their interval is that of the differences per task.
    Otherwise it is that of the difference of two independent means.

    Parameters
    ----------
    one, other : Measured
    name : str
        What the other run is called.
    """
    same = one.has_tasks_of(other)
    wide = [
        run.accuracies.pivot(index="task_id", columns=["setting", "model"], values="accuracy") for run in (one, other)
    ]
    rows = []
    settings = [*dict.fromkeys(one.accuracies["setting"])]
    both = [column for column in wide[0].columns if column in wide[1].columns]
    for column in sorted(both, key=lambda column: settings.index(column[0])):
        values = [table[column].dropna().to_numpy(dtype=np.float64) for table in wide]
        if min(map(len, values)) < 2:
            continue
        here, there = map(Interval.of, values)
        difference = (
            Interval.of(values[0] - values[1])
            if same
            else Interval(here.mean - there.mean, float(np.hypot(here.ci95, there.ci95)))
        )
        cells = (f"{here:.2f}", f"{there:.2f}", f"{difference:+.2f}")
        setting, model = map(str, column)
        rows.append((setting.replace("_", "-"), NAMES.get(model, model), *cells))
    return Table(
        title=f"Accuracy on {'the same' if same else 'other'} test tasks {'as' if same else 'than'} {name}",
        columns=("setting", "labels learned", "this run, %", f"{name}, %", "difference"),
        rows=rows,
        empty=f"no embedding was tested by this run and by {name}",
    )


def different_parameters(one: Measured, other: Measured) -> list[tuple[str, str, str]]:
    """Return the parameters that differ, with their values in both runs, but for those of the machine."""
    mine, theirs = (dict(_flat(run.params)) for run in (one, other))
    names = [name for name in mine | theirs if not name.startswith("runtime.")]
    pairs = [(name, str(mine.get(name, MISSING)), str(theirs.get(name, MISSING))) for name in names]
    return [(name, here, there) for name, here, there in pairs if here != there]


def _flat(params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in params.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
