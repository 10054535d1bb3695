"""Compare weights of soft labels with the truth: the measure of ``python -m studies labels.weights``."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from mela.labeling.merge_labeler import MergeLabeler
from studies.labels.quality import material

BOUNDS = (0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 1.01)


def measure(*, data: str, seed: int, tasks: str, embedding: str, folder: Path) -> list[dict[str, Any]]:
    """Return for clustered task classes between two bounds: how many, mean weight in their cluster, and share right."""
    _, samples, true = material(folder, data, seed, tasks, embedding)
    found = MergeLabeler(random_state=seed, soft=True).fit_tasks(samples)
    used = np.flatnonzero(found.class_labels_ >= 0)
    labels, truth = found.class_labels_[used], true[used]
    weights = np.asarray(found.class_weights_[used, labels]).ravel()
    right = pd.crosstab(labels, truth).idxmax(axis=1)[labels].to_numpy() == truth
    auc = None if right.all() else roc_auc_score(~right, -weights)
    rows = pd.DataFrame({"weight": weights, "right": right, "low": np.array(BOUNDS)[np.digitize(weights, BOUNDS) - 1]})
    groups = rows.groupby("low")
    between = groups.mean().assign(n=groups.size(), auc=auc).reset_index()
    return [{str(name): value for name, value in row.items()} for row in between.to_dict("records")]


def print_summary(table: pd.DataFrame) -> None:
    """Print n, mean weight and share right between the bounds, for each kind of tasks."""
    for tasks, part in table.groupby("tasks"):
        print(f"{tasks}:")
        for low, high in pairwise(BOUNDS):
            inside = part[part["low"] == low]
            if n := int(inside["n"].sum()):
                weight, right = (float((inside[name] * inside["n"]).sum()) / n for name in ("weight", "right"))
                print(f"  {low:g} to {min(high, 1):g}: n {n}, weight {weight:.3f}, right {right:.3f}")
