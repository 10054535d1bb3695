"""Draw docs/images/people.png, the picture of docs/method/labels.md: python docs/_tools/people_picture.py.

On the left are simulated task classes, before and after the shifts of their tasks are subtracted. On the right is how
good labels become in rounds, from studies/results/people.csv.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mela.data.array_types import Floats, Ints
from mela.labeling.shifts import find_shifts
from mela.params import ROUNDS
from mela.reporting.figures import BLUE, GREEN, GREY, ORANGE

ROOT = Path(__file__).parents[2]
COLORS = [BLUE, ORANGE, GREEN, "#8a4fbf", "#c23b4b", GREY]
WAYS, TASKS, SHOWN = 4, 70, 3
DATA = {"glyphs_people": "glyphs", "omniglot_people": "Omniglot, one drawing each", "cifar_fs_people": "photographs"}


def main() -> None:
    """Draw the three panels."""
    figure = Figure(figsize=(12, 3.9), layout="constrained", dpi=120, facecolor="white")
    before, after, rounds = figure.subplots(1, 3, width_ratios=(1, 1, 1.15))
    rng = np.random.default_rng(4)
    truth = np.concatenate([rng.permutation(len(COLORS))[:WAYS] for _ in range(TASKS)])
    angles = np.arange(len(COLORS)) * 2 * np.pi / len(COLORS) + 0.4
    centers = 2 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    shifts = rng.normal(size=(TASKS, 1)) * (2.4, 1.2)
    means = centers[truth] + rng.normal(size=(len(truth), 2)) * 0.25 + shifts.repeat(WAYS, axis=0)
    starts = np.arange(0, len(truth) + 1, WAYS)
    show(before, means, truth, "as people's cameras shift them")
    show(after, find_shifts(means, starts).subtract(means, starts), truth, "less the shifts of their tasks")
    draw_rounds(rounds, pd.read_csv(ROOT / "studies/results/people.csv"))
    figure.savefig(ROOT / "docs/images/people.png")


def show(axes: Axes, points: Floats, truth: Ints, title: str) -> None:
    """Show task classes (n, 2) in the colours of their classes; lines join those of some tasks."""
    axes.scatter(*points.T, c=[COLORS[own] for own in truth], s=14, alpha=0.7, linewidth=0)
    for task in range(SHOWN):
        corners = points[task * WAYS : (task + 1) * WAYS]
        corners = corners[np.argsort(np.arctan2(*(corners - corners.mean(axis=0)).T))]
        axes.plot(*corners[[*range(WAYS), 0]].T, color="#222", linewidth=0.9)
    axes.set_title(title, fontsize=10)
    axes.set(xticks=[], yticks=[], aspect="equal", xlim=(-6.5, 6.5), ylim=(-5.3, 5.3))


def draw_rounds(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the ARI of the labels that each round learned, and of those after the last: means over the seeds."""
    steps = [*ROUNDS, "merged"]
    for color, (data, name) in zip(COLORS[: len(DATA)], DATA.items(), strict=True):
        own = table[(table["data"] == data) & table["labels"].isin(steps)]
        own = own[own["share"] == own["share"].max()]
        # of some seeds only the last labels are known
        own = own[own.groupby("seed")["labels"].transform("size") == own["labels"].nunique()]
        found = own.groupby("labels")["ari"].agg(["mean", "min", "max"])
        # what follows the last round of a data set are its final labels
        order = [step for step in steps if step in found.index]
        at = [*range(1, len(order) + 1)]
        values = found.loc[order]
        axes.plot(at, values["mean"], marker="o", color=color, label=name)
        axes.fill_between(at, values["min"], values["max"], color=color, alpha=0.2, linewidth=0)
    axes.set(xlabel="rounds that the labels rest on", ylabel="ARI of the labels", ylim=(0, 1.03))
    axes.set_xticks(range(1, len(ROUNDS) + 1))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right", fontsize=9)
    axes.set_title("labels after rounds of training", fontsize=10)


if __name__ == "__main__":
    main()
