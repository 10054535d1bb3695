"""Draw figures of a run: each function takes tables and returns a matplotlib figure."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mela.reporting.summary import NAMES

BLUE, LIGHT, ORANGE, GREEN, GREY, PALE = "#2a6fbb", "#9cc3ea", "#d9822b", "#3a8f5c", "#8a8f98", "#c9ccd1"
MANY_BARS = 12
# of embeddings, by the labels that they learned
COLORS = {"initial": GREY, "merged": BLUE, "merged_soft": LIGHT, "pruned": ORANGE, "kmeans": PALE, "oracle": GREEN}


def accuracy_figure(evaluation: Mapping[str, Any]) -> Figure:
    """Draw the accuracy of every embedding in each setting as bars, with 95% intervals."""
    figure, axes = _figure()
    settings, models = list(evaluation["tasks"]), evaluation["accuracy"]
    width, positions = 0.8 / len(models), np.arange(len(settings))
    # numbers on narrow bars would lie over one another
    turned = 90 if len(models) * len(settings) > MANY_BARS else 0
    for number, (name, found) in enumerate(models.items()):
        means, errors = ([found[setting][key] for setting in settings] for key in ("mean", "ci95"))
        at, color = positions + (number + 0.5) * width - 0.4, COLORS.get(name, GREY)
        bars = axes.bar(at, means, 0.9 * width, yerr=errors, color=color, label=NAMES.get(name, name), capsize=2)
        axes.bar_label(bars, fmt="%.1f", padding=3, fontsize=8, rotation=turned)
    axes.set_xticks(positions, [setting.replace("_", "-") for setting in settings])
    axes.set(ylabel="accuracy on test tasks (%)", ylim=(0, 110))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2, frameon=False)
    return figure


def merges_figure(merges: pd.DataFrame, true_classes: int | None) -> Figure:
    """Show how merging found the number of classes: the odds of its merges, perhaps of none."""
    figure, axes = _figure()
    merges = merges.astype({"made": bool})
    made = merges[merges["made"]]
    left = made["clusters"].min()
    parts = [
        ("first phase", made[made["phase"] == 1], LIGHT),
        ("second phase", made[made["phase"] == 2], BLUE),
        ("not made", merges[~merges["made"] & (merges["phase"] == 2)], ORANGE),
    ]
    for name, part, color in parts:
        part = part[part["clusters"] <= 3 * left]
        axes.plot(part["clusters"], part["log_odds"], color=color, marker=".", linestyle="none", label=name)
    axes.axhline(0, color=GREY, linewidth=0.8)
    if true_classes is not None:
        axes.axvline(true_classes, color=GREY, linestyle="--", label="true classes")
    axes.invert_xaxis()
    axes.set_yscale("symlog", linthresh=10)
    axes.set(xlabel="clusters after the merge", ylabel="log odds for one class")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4, frameon=False)
    return figure


def passes_figure(passes: pd.DataFrame, true_classes: int | None) -> Figure:
    """Show how pruning found the number of classes: the clusters that each pass kept."""
    figure, axes = _figure()
    steps = np.arange(len(passes) + 1)
    axes.plot(steps, [passes["clusters"].iloc[0], *passes["kept"]], color=BLUE, marker="o", label="clusters")
    axes.plot(steps[1:], passes["threshold"], color=LIGHT, marker="_", label="fewest tasks of a cluster kept")
    if true_classes is not None:
        axes.axhline(true_classes, color=GREY, linestyle="--", label="true classes")
    axes.set(xlabel="pass", ylabel="clusters, or tasks", ylim=(0, None))
    share = axes.twinx()
    for column, color, label in [
        ("tasks_clustered", ORANGE, "tasks clustered"),
        ("precision", GREEN, "est. precision"),
    ]:
        share.plot(steps[1:], passes[column], color=color, marker=".", label=f"{label} (%)")
    share.set(ylabel="%", ylim=(0, 105))
    share.spines["top"].set_visible(False)
    handles = [*axes.get_legend_handles_labels()[0], *share.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=3, frameon=False, fontsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def sizes_figure(sizes: pd.DataFrame) -> Figure:
    """Draw the tasks of each cluster, largest first, and the smallest number of tasks with which one was kept."""
    figure, axes = _figure()
    axes.fill_between(sizes["rank"], sizes["tasks"], step="mid", color=BLUE, alpha=0.8, label="cluster")
    axes.axhline(sizes["threshold"].iloc[0], color=ORANGE, label="fewest tasks kept")
    axes.set(xlabel="cluster, largest first", ylabel="tasks", xlim=(0.5, len(sizes) + 0.5))
    axes.legend(frameon=False)
    return figure


def curves_figure(embed: pd.DataFrame, pretrain: pd.DataFrame) -> Figure:
    """Draw the losses and accuracies of both trainings."""
    figure = Figure(figsize=(8, 3.6), layout="constrained", dpi=120)
    for axes, curve, title in zip(
        figure.subplots(1, 2), [embed, pretrain], ["initial embedding", "pre-training"], strict=True
    ):
        axes.plot(curve["epoch"], curve["loss"], color=BLUE, marker=".", label="loss")
        axes.set(title=title, xlabel="epoch", ylim=(0, None))
        axes.set_ylabel("training loss", color=BLUE)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        right = axes.twinx()
        right.plot(curve["epoch"], curve["accuracy"], color=ORANGE, marker=".", label="accuracy")
        right.set_ylabel("training accuracy (%)", color=ORANGE)
        right.set_ylim(0, 105)
        axes.spines["top"].set_visible(False)
        right.spines["top"].set_visible(False)
    return figure


def _figure(height: float = 4) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(6.4, height), layout="constrained", dpi=120)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def losses_figure(task_loss: float, global_loss: float) -> Figure:
    """Show Proposition 1: the loss over each task's classes is at most that over all classes."""
    figure, axes = _figure(height=1.7)
    names = ["over each task's classes", "over all classes"]
    bars = axes.barh(names, [task_loss, global_loss], color=[LIGHT, BLUE])
    axes.bar_label(bars, fmt="%.4f", padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set(xlabel="cross-entropy of the final embedding on the training tasks")
    return figure
