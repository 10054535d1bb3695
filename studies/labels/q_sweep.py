"""What q does to clusters, accuracy and tasks clustered on the data of the last run: pruning, guarded or not; merging.

``python -m studies.labels.q_sweep --q 3.5 --q 4.5 ...`` after ``dvc repro extract`` (or a whole run) writes
studies/results/q_sweep.csv and studies/results/q_sweep.png. Where the data has no true classes the accuracy is left
out. The same through the pipeline, few-shot accuracy included: ``dvc exp run --queue -S 'labeler.q=3.5,4.5,5.5,6.5' -S
labeler.merge=false``.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from matplotlib.figure import Figure

from mela.evaluation.label_scores import majority_accuracy
from mela.io import feature_tables, schemas, store
from mela.io.atomic import replacing
from mela.labeling.labeler import LearnLabeler
from mela.labeling.report import label_metrics
from mela.labeling.task_classes import TaskSamples, manifest_samples
from mela.params import PARAMS, LabelerParams
from mela.reporting.figures import BLUE, GREEN, GREY, ORANGE
from stages.common import paths

MODES = {
    "pruned, no guard": {"merge": False, "guard": False},
    "pruned": {"merge": False, "guard": True},
    "merged": {"merge": True},
}
COLORS = dict(zip(MODES, [ORANGE, BLUE, GREEN], strict=True))


def sweep(samples: TaskSamples, truth: pd.Series | None, settings: dict[str, Any], qs: list[float]) -> pd.DataFrame:
    """One row per mode and q.

    Parameters
    ----------
    samples : TaskSamples
    truth : Series or None
        True class of each task class, for scoring.
    settings : dict
        Of LearnLabeler, short of what is swept.
    qs : list of float
    """
    rows = []
    for mode, changes in MODES.items():
        for q in qs:
            row: dict[str, Any] = {"mode": mode, "q": q}
            try:
                found = LearnLabeler(**settings | changes | {"q": q}).fit_tasks(samples)
            except ValueError as error:
                rows.append(row | {"error": str(error)})
                print(rows[-1], flush=True)
                continue
            used = found.class_labels_ >= 0
            row |= {"clusters": len(np.unique(found.class_labels_[used]))}
            row |= label_metrics(found)
            if truth is not None:
                codes = pd.factorize(truth)[0]
                row |= {"accuracy": 100 * majority_accuracy(found.class_labels_[used], codes[used])}
            rows.append(row)
            print(row, flush=True)
    return pd.DataFrame(rows)


def draw(table: pd.DataFrame, true_classes: int | None) -> Figure:
    """Three panels over q; what failed has no point."""
    figure = Figure(figsize=(11, 3.4), layout="constrained", dpi=120)
    panels = [
        ("clusters", "clusters"),
        ("accuracy", "clustering accuracy (%)"),
        ("tasks_clustered", "tasks clustered (%)"),
    ]
    panels = [panel for panel in panels if panel[0] in table]
    for axes, (column, label) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        for mode, rows in table.groupby("mode", sort=False):
            axes.plot(rows["q"], rows[column], marker="o", color=COLORS[str(mode)], label=mode)
        if column == "clusters" and true_classes is not None:
            axes.axhline(true_classes, color=GREY, linestyle="--", label="true classes")
        axes.set(xlabel="q", ylabel=label, ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
        if column == "clusters":
            axes.legend(frameon=False, fontsize=8)
    return figure


def main(
    q: Annotated[list[float], typer.Option(help="values of q")] = [3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5],  # noqa: B006
    params: Annotated[Path, typer.Option(help="its labeler block holds the rest")] = PARAMS,
    out: Annotated[Path, typer.Option(help="folder of the table and the picture")] = Path("studies/results"),
) -> None:
    """Sweep q and draw it."""
    image_ids, features = feature_tables.read_features(paths.FEATURES)
    samples = manifest_samples(store.read_table(paths.TRAIN, schemas.MANIFEST), image_ids, features)
    known = store.read_table(paths.TRUTH, schemas.TRUTH)
    truth = None
    if not known.empty:
        truth = known.set_index("image_id")["class"].reindex(image_ids[samples.index[samples.first]])
    values = LabelerParams.read(params).model_dump(exclude={"seed", "q", "merge", "guard"})
    settings = values | {"random_state": LabelerParams.read(params).seed}
    table = sweep(samples, truth, settings, q)
    store.write_csv(out / "q_sweep.csv", table)
    with replacing(out / "q_sweep.png") as temporary:
        draw(table, None if truth is None else truth.nunique()).savefig(temporary, format="png")


if __name__ == "__main__":
    typer.run(main)
