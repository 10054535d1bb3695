"""How well the labels of the benchmark agree with the truth."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmark.comparison import seeds_of
from benchmark.report.markdown import NAMES, table
from benchmark.systems import LABELS
from mela.reporting.metrics import Scores, read_metrics

COUNTS = ["clusters", "true_classes"]
COLUMNS = ["data", "labels", "seed", *COUNTS, "tasks_clustered", "accuracy", "purity", "ari"]


def read_scores(results: Path, data: Sequence[str], inferred: Sequence[str]) -> pd.DataFrame:
    """Return a row for each data set, kind of labels and seed that is scored; what nobody knows is missing.

    Parameters
    ----------
    results : Path
        With files ``<data>/seed<n>/labels-<name>.json``, made by the stage `score_inferred`.
    data : sequence of str
    inferred : sequence of str
        Names of labels, in the order of the rows; those of K-means come last.

    Raises
    ------
    MelaError
        A file lacks a key.
    """
    rows: list[dict[str, Any]] = []
    for name in data:
        scored = [
            {"data": name, "labels": labels, "seed": seed, **read_metrics(path, Scores)}
            for labels in inferred
            for seed, own in seeds_of(results / name).items()
            if (path := own / f"labels-{labels}.json").exists()
        ]
        kmeans = {
            row["seed"]: {"data": name, "labels": "kmeans", "seed": row["seed"], **row["kmeans"]}
            for row in scored
            if "kmeans" in row
        }
        rows += [*scored, *kmeans.values()]
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(COUNTS, "Int64"))


def inferred_labels(scores: pd.DataFrame) -> Iterator[str]:
    """Yield the table of `read_scores`: from the lowest to the highest seed; nothing where no labels are scored."""
    rows = []
    for key, own in scores.groupby(["data", "labels"], sort=False):
        data, labels = map(str, key)
        classes, true = (_span(own[name], ",.0f") for name in COUNTS)
        shares = [_span(own[name], ".2f", "%") for name in ("tasks_clustered", "accuracy", "purity")]
        rows.append([NAMES.get(data, data), LABELS[labels], f"{classes} of {true}" if true else classes, *shares])
    if rows:
        yield from table(["", "labels", "classes found", "tasks clustered", "accuracy", "purity"], rows)


def _span(values: "pd.Series[Any]", form: str, unit: str = "") -> str:
    """Return the lowest and the highest value, or the one that all seeds share, or nothing."""
    known = sorted(values.dropna())
    return "\N{EN DASH}".join(dict.fromkeys(f"{known[end]:{form}}" for end in (0, -1))) + unit if known else ""
