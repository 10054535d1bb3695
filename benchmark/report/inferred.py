"""Show how well the labels of the benchmark agree with the truth."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark.comparison import seeds_of
from benchmark.systems import LABELS
from mela.reporting.metrics import Scores, read_metrics

HEADER = """## Inferred labels

What MeLa makes of each data set's training tasks, with the initial embedding of each seed, against the true classes:
the number of classes found, the share of tasks clustered, clustering accuracy over these, purity, which is the share of
labelled images whose class is the most frequent one of their label, and the adjusted Rand index. MeLa's labels are
merged, which is the default, or pruned by the paper's Algorithm 2, to the letter or guarded against pruning that runs
away. Beside them K-means on the same features, which does without the tasks, but is told the number of classes.

| | labels | seed | classes found | true classes | tasks clustered | accuracy | purity | ARI |
|---|---|---|---|---|---|---|---|---|
"""
NONE = "-"


def inferred_labels(results: Path, data: Sequence[str], inferred: Sequence[str]) -> list[str]:
    """Return the lines of the table and its introduction; none if nothing is scored.

    Parameters
    ----------
    results : Path
        Folder with files ``<data>/seed<n>/labels-<name>.json``, made by the stage `score_inferred`.
    data : sequence of str
    inferred : sequence of str
        Names of labels, in the order of the rows.

    Raises
    ------
    MelaError
        A file lacks a key.
    """
    rows = [row for name in data for row in _rows(results / name, name, inferred)]
    return [HEADER + "\n".join(rows), ""] if rows else []


def _rows(folder: Path, data: str, inferred: Sequence[str]) -> Iterator[str]:
    scored = {
        (name, seed): read_metrics(path, Scores)
        for name in inferred
        for seed, own in seeds_of(folder).items()
        if (path := own / f"labels-{name}.json").exists()
    }
    for (name, seed), found in scored.items():
        yield _row(data, name, seed, found)
    others = {seed: found for (_, seed), found in scored.items() if "kmeans" in found}
    for seed, found in others.items():
        yield _row(data, "kmeans", seed, found["kmeans"])


def _row(data: str, name: str, seed: int, found: Mapping[str, Any]) -> str:
    counts = [f"{found[key]:,}" if key in found else NONE for key in ("clusters", "true_classes")]
    keys = {"tasks_clustered": ".2f", "accuracy": ".2f", "purity": ".2f", "ari": ".4f"}
    shares = [
        f"{found[key]:{digits}}{'' if key == 'ari' else '%'}" if key in found else NONE for key, digits in keys.items()
    ]
    return f"| {' | '.join([data, LABELS[name], str(seed), *counts, *shares])} |"
