"""Show what q does to clusters, accuracy and tasks clustered: pruning, guarded or not, beside merging.

``python -m studies labels.q_sweep --q 3.5 --q 4.5 ...`` after ``dvc repro extract`` (or a whole run) sweeps q on the
data of the last run and writes q_sweep.csv and q_sweep.png into studies/results. Where the data has no true classes the
accuracy is left out. With ``--grid`` it draws docs/images/q-grid.png from what ``python -m studies labels.grid`` made.
The same through the pipeline, few-shot accuracy included: ``dvc exp run --queue -S 'labeler.q=3.5,4.5,5.5,6.5'``.
"""

from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mela.io import feature_tables, schemas, store
from mela.io.atomic import replacing
from mela.labeling.labeler_choice import build_labeler
from mela.labeling.task_classes import TaskSamples, manifest_samples
from mela.params import PARAMS, LabelerParams
from mela.reporting.figures import BLUE, GREEN, GREY, ORANGE
from stages.common import paths
from studies.labels.quality import scores
from studies.labels.tables import NAMES, ROWS

MODES = {
    "pruned, no guard": {"merge": False, "guard": False},
    "pruned": {"merge": False, "guard": True},
    "merged": {"merge": True},
}
COLORS = dict(zip(MODES, [ORANGE, BLUE, GREEN], strict=True))
PANELS = {"clusters": "clusters", "accuracy": "clustering accuracy (%)", "tasks_clustered": "tasks clustered (%)"}
SETTINGS = r"pruned q=(?P<q>[\d.]+)(?P<rest>.*)"


def sweep(samples: TaskSamples, truth: pd.Series | None, settings: dict[str, Any], qs: list[float]) -> pd.DataFrame:
    """Return a row for each mode and q.

    Parameters
    ----------
    samples : TaskSamples
    truth : Series or None
        True class of each task class, for scoring.
    settings : dict
        Settings of the labelers, without the swept ones.
    qs : list of float
    """
    rows: list[dict[str, Any]] = []
    codes = np.zeros(len(samples.sizes), np.int64) if truth is None else pd.factorize(truth)[0]
    for mode, q in product(MODES, qs):
        try:
            found = scores(build_labeler(**settings | MODES[mode] | {"q": q}).fit_tasks(samples), codes)
        except ValueError as error:
            found = {"error": str(error)}
        rows.append({"mode": mode, "q": q, **found})
        print(rows[-1], flush=True)
    return pd.DataFrame(rows).drop(columns=["accuracy", "ari"] if truth is None else [], errors="ignore")


def by_q(table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of the grid with columns mode and q; merging, which has no q, is repeated at each.

    Parameters
    ----------
    table : DataFrame
        Rows of one data set, kind of tasks and embedding; column labeler.
    """
    settings = table["labeler"].str.extract(SETTINGS)
    parts = [
        table[settings["rest"] == rest].assign(mode=mode, q=settings["q"].astype(float))
        for mode, rest in {"pruned": "", "pruned, no guard": ", no guard"}.items()
    ]
    merged = table[table["labeler"] == "merged"].assign(mode="merged")
    parts += [merged.assign(q=q) for q in sorted(parts[0]["q"].unique())]
    return pd.concat(parts, ignore_index=True)


def draw(rows: pd.DataFrame, axes: list[Axes], true_classes: float | None) -> None:
    """Draw panels over q: means over the seeds, and bands from smallest to largest; failures have no point."""
    shown = [column for column in PANELS if column in rows]
    for panel, column in zip(axes, shown, strict=True):
        for mode, color in COLORS.items():
            found = rows[rows["mode"] == mode].groupby("q")[column].agg(["mean", "min", "max"])
            panel.plot(found.index, found["mean"], marker="o", color=color, label=mode)
            panel.fill_between(found.index, found["min"], found["max"], color=color, alpha=0.2, linewidth=0)
        if column == "clusters" and true_classes is not None:
            panel.axhline(true_classes, color=GREY, linestyle="--", label="true classes")
        panel.set(ylabel=PANELS[column], ylim=(0, None if column == "clusters" else 105))
        panel.spines[["top", "right"]].set_visible(False)


def figure_of(parts: dict[str, pd.DataFrame], true: dict[str, float | None]) -> Figure:
    """Return a figure with a row of panels for each data set, by its title."""
    figure = Figure(figsize=(11, 0.6 + 2.6 * len(parts)), layout="constrained", dpi=120)
    columns = min(sum(column in rows for column in PANELS) for rows in parts.values())
    grid = figure.subplots(len(parts), columns, sharex=True, squeeze=False)
    for (name, rows), axes in zip(parts.items(), grid, strict=True):
        draw(rows, [*axes], true[name])
        axes[0].set_title(name, loc="left", fontweight="bold")
    for panel in grid[-1]:
        panel.set_xlabel("q")
    grid[0, 0].legend(frameon=False, fontsize=8)
    return figure


def main(
    q: Annotated[list[float], typer.Option(help="values of q")] = [3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5],  # noqa: B006
    params: Annotated[Path, typer.Option(help="its labeler block holds the rest")] = PARAMS,
    out: Annotated[Path, typer.Option(help="folder of the table and the picture")] = Path("studies/results"),
    grid: Annotated[bool, typer.Option("--grid", help="draw the rows of the grid instead")] = False,
    picture: Annotated[Path, typer.Option(help="of the grid")] = Path("docs/images/q-grid.png"),
    tasks: Annotated[str, typer.Option(help="once | repl, of the grid")] = "repl",
    embedding: Annotated[str, typer.Option(help="weak | strong, of the grid")] = "strong",
    seeds: Annotated[int, typer.Option(help="of the grid, from 0")] = 3,
) -> None:
    """Sweep q and draw it, or draw what the grid of labelers has."""
    if grid:
        table = pd.read_csv(ROWS).query("tasks == @tasks and embedding == @embedding and seed < @seeds")
        parts = {NAMES[name]: by_q(table[table["data"] == name]) for name in ("cifar_fs", "fc100", "omniglot")}
        true: dict[str, float | None] = {name: float(rows["true"].iloc[0]) for name, rows in parts.items()}
    else:
        image_ids, features = feature_tables.read_features(paths.FEATURES)
        samples = manifest_samples(store.read_table(paths.TRAIN, schemas.MANIFEST), image_ids, features)
        known, truth = store.read_table(paths.TRUTH, schemas.TRUTH), None
        if not known.empty:
            truth = known.set_index("image_id")["class"].reindex(image_ids[samples.index[samples.first]])
        labeler, picture = LabelerParams.read(params), out / "q_sweep.png"
        settings = labeler.model_dump(exclude={"seed", "q", "guard"}) | {"random_state": labeler.seed}
        rows = sweep(samples, truth, settings, q)
        store.write_csv(out / "q_sweep.csv", rows)
        parts, true = {"": rows}, {"": None if truth is None else truth.nunique()}
    with replacing(picture) as temporary:
        figure_of(parts, true).savefig(temporary, format="png")
