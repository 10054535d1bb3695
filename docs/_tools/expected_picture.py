"""Draw docs/images/expected.png, a picture of docs/method/labels.md: python docs/_tools/expected_picture.py.

It shows the expected adjusted Rand index against the true one, from studies/results/expected.csv, and for tasks of one
pool from label_grid.csv and label_samples.csv.
"""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from mela.reporting.figures import BLUE, GREEN, GREY, ORANGE

ROOT = Path(__file__).parents[2]
NAMES = {
    "glyphs_people": ("glyphs", BLUE),
    "omniglot_people": ("Omniglot, one drawing each", ORANGE),
    "cifar_fs_people": ("photographs by cameras", GREEN),
    "fc100_people": ("superclasses", GREY),
    "flowers_people": ("flowers, one each", "#b03a6f"),
}


def main() -> None:
    """Draw a point for each fit."""
    figure = Figure(figsize=(5, 4.4), layout="constrained", dpi=120, facecolor="white")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="#999", linewidth=0.8)
    table = pd.read_csv(ROOT / "studies/results/expected.csv").drop_duplicates(["data", "seed", "expected_ari", "ari"])
    for data, own in table.groupby("data"):
        name, color = NAMES[str(data)]
        axes.scatter(own["ari"], own["expected_ari"], s=28, color=color, alpha=0.85, linewidth=0, label=name)
    tables = [pd.read_csv(ROOT / f"studies/results/{name}.csv") for name in ("label_grid", "label_samples")]
    pooled = pd.concat(tables).dropna(subset="expected_ari")
    axes.scatter(pooled["ari"], pooled["expected_ari"], s=22, color="#333", marker="x", linewidth=0.8, label="one pool")
    axes.set(xlim=(0, 1.03), ylim=(0, 1.03), aspect="equal", xlabel="ARI", ylabel="expected ARI")
    axes.legend(fontsize=8, frameon=False, loc="lower right")
    figure.savefig(ROOT / "docs/images/expected.png")


if __name__ == "__main__":
    main()
