"""How well the labels of the benchmark agree with the truth."""

from collections.abc import Sequence
from pathlib import Path

from mela.comparison import seeds_of
from mela.run_metrics import Scores, read_metrics

FILE = "labels.json"
HEADER = """## Inferred labels

What MeLa makes of each data set's training tasks, with the initial embedding of each seed, against the true classes:
the number of classes found, the purity, which is the share of images whose class is the most frequent one of their
label, and the adjusted Rand index. Beside it K-means on the same features, which does without the tasks, but is told
the number of classes.

| | seed | classes found | true classes | purity | ARI | K-means: purity | K-means: ARI |
|---|---|---|---|---|---|---|---|
"""


def inferred_labels(results: Path, data: Sequence[str]) -> list[str]:
    """Lines of the table with what goes before it; none where nothing is scored.

    Parameters
    ----------
    results : Path
        With files ``<data>/seed<n>/labels.json``, made by the stage `score_labels`.
    data : sequence of str

    Raises
    ------
    MelaError
        A file lacks a key.
    """
    rows = []
    for name in data:
        for seed, folder in seeds_of(results / name).items():
            if not (folder / FILE).exists():
                continue
            found = read_metrics(folder / FILE, Scores)
            cells = [name, str(seed), f"{found['clusters']:,}"]
            if "true_classes" in found:
                cells.append(f"{found['true_classes']:,}")
                cells += [f"{one['purity']:.2f}% | {one['ari']:.4f}" for one in (found, found["kmeans"])]
            else:
                cells += ["-"] * 5
            rows.append(f"| {' | '.join(cells)} |")
    return [HEADER + "\n".join(rows), ""] if rows else []
