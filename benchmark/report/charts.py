"""A chart of all systems of a data set, the best on top."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.systems import GROUPS, group, title

# the next where one marks fewer than MARKS places
TICKS = ([20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 97, 98, 99], range(5, 100, 5), range(0, 100, 2), range(100))
MARKS = 3
ROOM = 0.07  # of the width, for a tick
TOP = 99.95  # above it the scale would run away


@dataclass(frozen=True)
class Style:
    """How systems of a group are drawn: told apart by shape as by colour."""

    colour: str
    marker: str


STYLES = {
    "mela": Style("#0b5fb4", "o"),
    "tasks": Style("#b85c00", "s"),
    "kmeans": Style("#8a3ea8", "v"),
    "oracle": Style("#1b7f3b", "^"),
    "images": Style("#6b6b6b", "D"),
}


def style(system: str) -> Style:
    """Return how a system is drawn, by what it learns from."""
    return STYLES[group(system)]


def chart(table: pd.DataFrame, settings: Mapping[str, str], reference: str) -> Figure:
    """Means of all systems, with 95% intervals over tasks and a line from the worst to the best seed.

    Parameters
    ----------
    table : DataFrame
        Of `benchmark.comparison.summarize_systems`.
    settings : mapping of str to str
        What is drawn, a panel each, and how it is called; systems are in the order of the first, those that are not
        measured there at the bottom.
    reference : str
        A system whose mean is drawn as a line, if it is there.
    """
    means = table.pivot(index="system", columns="setting", values="mean")
    systems: list[str] = means.sort_values([*settings], na_position="first").index.to_list()
    figure = Figure(figsize=(3.2 + 3.2 * len(settings), 1.2 + 0.2 * len(systems)), layout="constrained")
    panels: list[Axes] = figure.subplots(1, len(settings), sharey=True, squeeze=False)[0].tolist()
    for panel, (setting, name) in zip(panels, settings.items(), strict=True):
        rows = table[table["setting"] == setting].set_index("system").to_dict("index")
        draw(panel, rows, systems)
        if reference in rows:
            panel.axvline(rows[reference]["mean"], color=style(reference).colour, lw=0.8, ls=":", zorder=0)
        panel.set(xlabel=f"test accuracy, {name}, %", ylim=(-0.7, len(systems) - 0.3))
    panels[0].set_yticks(range(len(systems)), [title(system) for system in systems], fontsize="small")
    known = {name: handle for panel in panels for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(known.values(), known.keys(), loc="outside upper center", ncols=len(STYLES), frameon=False)
    return figure


def draw(panel: Axes, rows: Mapping[Any, Mapping[Any, Any]], systems: Sequence[str]) -> None:
    """Draw the systems of a panel."""
    scale(panel, "x")
    for key, kind in STYLES.items():
        heights = [height for height, name in enumerate(systems) if name in rows and group(name) == key]
        if not heights:
            continue
        found = pd.DataFrame([rows[systems[height]] for height in heights])
        panel.hlines(heights, found["worst_seed"], found["best_seed"], color=kind.colour, lw=1, alpha=0.6)
        panel.errorbar(
            found["mean"],
            heights,
            xerr=found["ci95"],
            label=GROUPS[key],
            fmt=kind.marker,
            color=kind.colour,
            markersize=4,
            elinewidth=2.2,
        )
    mark(panel, "x")
    panel.grid(axis="x", alpha=0.3)
    panel.grid(axis="y", alpha=0.15)
    panel.tick_params(axis="y", length=0)


def scale(panel: Axes, axis: Literal["x", "y"]) -> None:
    """Give every halving of the errors the same room on an axis of accuracies in percent, before anything is drawn."""
    getattr(panel, f"set_{axis}scale")("function", functions=(_scaled, _unscaled))


def mark(panel: Axes, axis: Literal["x", "y"]) -> None:
    """Mark round accuracies on such an axis, after everything is drawn."""
    low, high = getattr(panel, f"get_{axis}lim")()
    getattr(panel, f"set_{axis}ticks")(ticks(low, high), minor=False)
    getattr(panel, f"set_{axis}lim")(low, high)
    getattr(panel, f"{axis}axis").set_major_formatter("{x:g}")


def ticks(low: float, high: float) -> list[int]:
    """Round accuracies between two, those at the top first, as far as there is room."""
    start, end = _scaled([low, high])
    kept: list[int] = []
    for known in TICKS:
        kept = []
        for tick in reversed(known):
            if low <= tick <= high and (not kept or _scaled(kept[0]) - _scaled(tick) >= ROOM * (end - start)):
                kept.insert(0, tick)
        if len(kept) >= MARKS:
            break
    return kept


def _scaled(accuracies: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Halvings of the errors: -log2(100 - accuracy)."""
    return -np.log2(100 - np.minimum(np.asarray(accuracies, dtype=np.float64), TOP))


def _unscaled(scaled: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Accuracies in percent, the inverse of `_scaled`."""
    return 100 - 2 ** -np.asarray(scaled, dtype=np.float64)
