"""What q does on CIFAR-FS, FC100 and Omniglot, from studies/results/label_grid.csv.

``python -m studies.labels.q_grid`` draws it.
"""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mela.io.atomic import replacing
from mela.reporting.figures import GREY
from studies.labels.grid import ROWS
from studies.labels.q_sweep import COLORS
from studies.labels.tables import NAMES

PANELS = {"clusters": "clusters", "accuracy": "clustering accuracy (%)", "tasks_clustered": "tasks clustered (%)"}
SETTINGS = r"pruned q=(?P<q>[\d.]+)(?P<rest>.*)"


def by_q(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of the grid with columns mode and q; merging, which has no q, stands beside the others at each.

    Parameters
    ----------
    table : DataFrame
        Rows of one data set, kind of tasks and embedding; column labeler.
    """
    settings = table["labeler"].str.extract(SETTINGS)
    plain, loose = settings["rest"] == "", settings["rest"] == ", no guard"
    parts = [
        table[plain].assign(mode="pruned", q=settings["q"].astype(float)),
        table[loose].assign(mode="pruned, no guard", q=settings["q"].astype(float)),
    ]
    merged = table[table["labeler"] == "merged"].assign(mode="merged")
    parts += [merged.assign(q=q) for q in sorted(parts[0]["q"].unique())]
    return pd.concat(parts, ignore_index=True)


def draw(rows: pd.DataFrame, axes: list[Axes]) -> None:
    """One row of panels over q: means over the seeds, and bands from the smallest to the largest."""
    for panel, (column, label) in zip(axes, PANELS.items(), strict=True):
        for mode, color in COLORS.items():
            found = rows[rows["mode"] == mode].groupby("q")[column].agg(["mean", "min", "max"])
            panel.plot(found.index, found["mean"], marker="o", color=color, label=mode)
            panel.fill_between(found.index, found["min"], found["max"], color=color, alpha=0.2, linewidth=0)
        if column == "clusters":
            panel.axhline(rows["true"].iloc[0], color=GREY, linestyle="--", label="true classes")
        panel.set(ylabel=label, ylim=(0, None if column == "clusters" else 105))
        panel.spines[["top", "right"]].set_visible(False)


def main(
    out: Annotated[Path, typer.Option(help="the picture")] = Path("docs/images/q-grid.png"),
    tasks: Annotated[str, typer.Option(help="once | repl")] = "repl",
    embedding: Annotated[str, typer.Option(help="weak | strong")] = "strong",
    seeds: Annotated[int, typer.Option(help="seeds, from 0")] = 3,
) -> None:
    """Draw one row of panels per data set."""
    table = pd.read_csv(ROWS).query("tasks == @tasks and embedding == @embedding and seed < @seeds")
    names = ["cifar_fs", "fc100", "omniglot"]
    figure = Figure(figsize=(11, 8.4), layout="constrained", dpi=120)
    grid = figure.subplots(len(names), len(PANELS), sharex=True)
    for name, axes in zip(names, grid, strict=True):
        draw(by_q(table[table["data"] == name]), list(axes))
        axes[0].set_title(NAMES[name], loc="left", fontweight="bold")
    for panel in grid[-1]:
        panel.set_xlabel("q")
    grid[0, 0].legend(frameon=False, fontsize=8)
    with replacing(out) as temporary:
        figure.savefig(temporary, format="png")


if __name__ == "__main__":
    typer.run(main)
