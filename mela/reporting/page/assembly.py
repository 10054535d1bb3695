"""Collect what the page says from the tables that stages wrote."""

from collections.abc import Mapping
from colorsys import hls_to_rgb
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mela.io import schemas
from mela.io.name_tables import LISTING, WRONG_LABELS, names_by_cluster
from mela.params import LABELS, ROUNDS, DataParams, ReportParams
from mela.reporting import figures
from mela.reporting.drawings import Drawing
from mela.reporting.environment import commit, hardware, versions
from mela.reporting.outcome import Outcome
from mela.reporting.page.class_names import held_out_counts, names_of_classes, readable
from mela.reporting.page.sheets import choose_images, sheet
from mela.reporting.page.svg import inline
from mela.reporting.published import ON_PAGE, PUBLISHED_SHOTS, SYSTEMS, benchmark_of
from mela.reporting.summary import NAMES, accuracies, accuracies_by_dataset, headline, labels, remarks, rounds_table
from mela.runtime.console import duration
from mela.runtime.usage import kept

PASSES = ("pass", "clusters", "threshold", "kept", "tasks_clustered", "precision")
# those before the report, of which it says what they took
BEFORE = ("images", "names", "manifest", "embed", "extract", *(f"round@{number}" for number in ROUNDS))
LABELING = ("label_merged", "label", "assign", "label_kmeans", "label_oracle", "score_labels")
STAGES = (*BEFORE, *LABELING, *(f"pretrain@{name}" for name in LABELS), "evaluate", "confusions", "map")
# what is read of the tables of a run
TABLES = {
    "passes": schemas.PASSES,
    "merges": schemas.MERGES,
    "sizes": schemas.SIZES,
    "clusters": schemas.CLUSTERS,
    "purities": schemas.PURITIES,
    "points": schemas.POINTS,
    "confusions": schemas.CONFUSIONS,
    "mistaken": schemas.MISTAKEN,
    "embed_curve": schemas.CURVE,
    "pretrain_curve": schemas.CURVE,
    "listing": LISTING,
    "wrong_labels": WRONG_LABELS,
}
# images with doubtful labels that the page shows
DOUBTS = 40


@dataclass(frozen=True, kw_only=True)
class Run:
    """Hold what the stages of a run have found.

    Attributes
    ----------
    outcome : Outcome
        The metrics of its stages.
    used : str
        The inferred labels of which the page shows classes, and whose training it shows.
    pretrain : mapping
        Metrics of that training.
    rounds : mapping of str to mapping
        Metrics of the rounds of training that are on, by their name.
    passes, merges, sizes, clusters, purities, points, confusions, mistaken, embed_curve, pretrain_curve : DataFrame
        Plot points that the stages wrote; purities has no rows where there is no truth.
    listing : DataFrame
        All labels of all people (`mela.io.name_tables.LISTING`).
    wrong_labels : DataFrame
        Training images that may have a wrong label (`mela.io.name_tables.WRONG_LABELS`).
    labels, weights : DataFrame
        Columns image_id and label, and image_id, label and weight.
    files : DataFrame
        Columns image_id and path; no rows where the tasks were drawn.
    images : uint8 (N, h, w, c)
        All packed images.
    """

    outcome: Outcome
    used: str
    pretrain: Mapping[str, Any]
    rounds: Mapping[str, Mapping[str, Any]]
    passes: pd.DataFrame
    merges: pd.DataFrame
    sizes: pd.DataFrame
    clusters: pd.DataFrame
    purities: pd.DataFrame
    points: pd.DataFrame
    confusions: pd.DataFrame
    mistaken: pd.DataFrame
    embed_curve: pd.DataFrame
    pretrain_curve: pd.DataFrame
    listing: pd.DataFrame
    wrong_labels: pd.DataFrame
    labels: pd.DataFrame
    weights: pd.DataFrame
    files: pd.DataFrame
    images: npt.NDArray[np.uint8]

    @property
    def paths(self) -> dict[int, str]:
        """The file of each image, where people have sorted them."""
        return dict(zip(self.files["image_id"], self.files["path"], strict=True))


def run_figures(run: Run) -> dict[str, Figure]:
    """Return the figures of a run by name, without those of labels that are off and of accuracy not measured."""
    losses, true = run.pretrain["proposition1"], run.outcome.true_classes
    found = {
        "sizes": figures.sizes_figure(run.sizes),
        "curves": figures.curves_figure(run.embed_curve, run.pretrain_curve),
        "losses": figures.losses_figure(losses["task_loss"], losses["global_loss"]),
    }
    # without merges where the clusters are those of people who differ
    if "merged" in run.outcome.labels and len(run.merges):
        found["merges"] = figures.merges_figure(run.merges, true)
    if "pruned" in run.outcome.labels:
        found["passes"] = figures.passes_figure(run.passes, true)
    if run.outcome.settings:
        found["accuracy"] = figures.accuracy_figure(run.outcome.evaluation)
    return found


def page_content(
    run: Run,
    settings: ReportParams,
    *,
    drawn: Mapping[str, Drawing],
    data: DataParams,
    parameters: str,
) -> dict[str, Any]:
    """Return all that the page names.

    Parameters
    ----------
    run : Run
    settings : ReportParams
    drawn : mapping of str to Drawing
        Its figures by their names.
    data : DataParams
    parameters : str
        All of them, as YAML.
    """
    usage = kept(STAGES) if settings.usage else {}
    called = names_by_cluster(run.listing)
    on_map = {label: readable(called.get(label, "")) for label in sorted(set(run.points["label"]))}
    # data that comes as tasks is split by tasks, even where its true classes are known
    new_classes = run.outcome.true_classes is not None and data.name != "tasks"
    svgs = {key: inline(own.svg, _description(key, run)) for key, own in drawn.items()}
    return {
        "data": data.described,
        "headline": headline(run.outcome, run.used, new_classes=new_classes),
        "new_classes": new_classes,
        "figures": dict.fromkeys(("accuracy", "merges", "passes")) | svgs,
        "accuracies": accuracies(run.outcome),
        "by_dataset": accuracies_by_dataset(run.outcome),
        "published": published_rows(run.outcome, benchmark_of(data)),
        "labels": labels(run.outcome),
        "confusions": confused_classes(run),
        "remarks": remarks(run.outcome),
        "used": NAMES[run.used],
        "doubts": run.outcome.labels[run.used].get("remark"),
        "clusters": doubtful_clusters(run, settings),
        "n_clusters": len(run.clusters),
        "named": len(run.files) > 0,
        "held_out": held_out_counts(run.listing),
        "wrong_labels": doubtful_images(run),
        "n_wrong_labels": len(run.wrong_labels),
        "truth": len(run.purities) > 0,
        "rounds": rounds_table(run.rounds),
        "passes": run.passes[list(PASSES)].to_dict("records"),
        "map_labels": on_map,
        "maps": {when: map_points(run.points, when) for when in ("before", "after")},
        "curves": {
            "Initial embedding": run.embed_curve.to_dict("records"),
            f"Pre-training on {run.used} labels": run.pretrain_curve.to_dict("records"),
        },
        "commit": commit(),
        "hardware": hardware(),
        "versions": versions(),
        "usage": {stage: (duration(took.seconds), f"{took.memory / 2**20:,.0f} MiB") for stage, took in usage.items()},
        "parameters": parameters,
    }


def _description(name: str, run: Run) -> str:
    """Describe a figure for those who do not see it."""
    rows = {"accuracy": accuracies(run.outcome).rows}.get(name, [])
    about = {
        "accuracy": "Accuracies of all embeddings",
        "merges": "Odds of the merges by the number of clusters that they left",
        "passes": "Clusters that each pass of pruning kept",
        "sizes": "Tasks of each cluster, largest first",
        "curves": "Training losses and accuracies by epoch",
        "losses": "The two losses of Proposition 1",
    }
    return ". ".join([about[name], *(f"{setting}: {model}: {accuracy}" for setting, model, accuracy, *_ in rows)])


def by_doubt(clusters: pd.DataFrame) -> pd.DataFrame:
    """Sort by rising certainty, and equals by falling distance of their number of task classes from the median.

    Classes of a single task class, which have no certainty, come last.
    Two classes in one cluster have the tasks of both, and fragments of one class share its tasks. Equal is what reads
    the same on the page, to a tenth of a percent.

    Parameters
    ----------
    clusters : DataFrame
        Columns certainty (percent), task_classes and label.
    """
    task_classes = clusters["task_classes"]
    ranked = clusters.assign(read=clusters["certainty"].round(1), usual=-(task_classes - task_classes.median()).abs())
    return ranked.sort_values(["read", "usual", "label"]).drop(columns=["read", "usual"])


def doubtful_clusters(run: Run, settings: ReportParams) -> list[dict[str, Any]]:
    """Describe the most doubtful classes, in the order of `by_doubt`.

    Returns
    -------
    list of dict
        The columns of both tables, where there is no truth without those of the second, ``sheet``, a contact sheet, and
        ``on_map``; ``called``, the name that somebody gave to the class, or nothing; where people wrote names,
        ``names`` of the class and the ``files`` of the sheet, else None.
    """
    shown = by_doubt(run.clusters).head(settings.sheets)
    if len(run.purities):
        shown = shown.merge(run.purities, on="label", how="left")
    own = run.labels[run.labels["label"].isin(shown["label"])].merge(run.weights, on=["image_id", "label"], how="left")
    groups = {int(str(label)): group for label, group in own.fillna({"weight": 0.0}).groupby("label")}
    on_map = set(run.points["label"])
    files = run.paths
    names, called = names_of_classes(run.listing) if files else {}, names_by_cluster(run.listing)
    records = [{str(key): value for key, value in row.items()} for row in shown.to_dict("records")]
    for record in records:
        label = int(record["label"])
        generator = np.random.default_rng([settings.seed, label])
        chosen = choose_images(groups[label], settings.images, generator)
        record |= {"sheet": sheet(run.images[chosen]), "on_map": label in on_map, "names": names.get(label)}
        record["called"] = readable(called.get(label, ""))
        record["files"] = [readable(files[image], letters=None) for image in chosen.tolist()] if files else None
    return records


def doubtful_images(run: Run) -> list[dict[str, str]]:
    """Describe the images that most probably have a wrong label, each with its picture."""
    rows = run.wrong_labels.head(DOUBTS).to_dict("records")
    return [
        {name: readable(row[name]) for name in ("task", "label", "other")}
        | {"file": readable(PurePosixPath(row["path"]).name)}
        | {"probability": f"{row['probability']:.0f}", "sheet": sheet(run.images[[int(row["image_id"])]])}
        for row in rows
    ]


def confused_classes(run: Run) -> list[dict[str, Any]]:
    """Describe the pairs of classes that are confused most often, each with a sheet of images that were mistaken.

    Where people wrote names, the ``files`` of the sheet have theirs, else None.
    """
    files = run.paths
    images = {
        (str(one), str(other)): group["image_id"].to_numpy()
        for (one, other), group in run.mistaken.groupby(["class", "taken_for"])
    }
    found = []
    for row in run.confusions.to_dict("records"):
        pair = row["class"], row["taken_for"]
        if pair in images:
            # whole, since a label ends with its task
            one, other = (readable(name, letters=None) for name in pair)
            shots = row["setting"].partition("_")[0]
            rate = f"{100 * row['errors'] / row['queries']:.1f}"
            told = {"class": one, "taken_for": other, "shots": shots, "rate": rate}
            counts = {"errors": row["errors"], "queries": row["queries"]}
            listed = [readable(PurePosixPath(files[image]).name) for image in images[pair].tolist()] if files else None
            found.append(told | counts | {"sheet": sheet(run.images[images[pair]]), "files": listed})
    return found


def published_rows(outcome: Outcome, data: str) -> list[tuple[str, str, str]]:
    """Return setting, system and accuracy of published results for a data set, in the measured settings."""
    settings = [f"{shots}_shot" for shots in PUBLISHED_SHOTS]
    return [
        (setting.replace("_", "-"), called, f"{SYSTEMS[system][data][number]:.1f}")
        for number, setting in enumerate(settings)
        for system, called in ON_PAGE.items()
        if setting in outcome.settings and data in SYSTEMS[system]
    ]


def map_points(points: pd.DataFrame, when: str) -> list[dict[str, Any]]:
    """Return the circles of a map of side 100, coloured by class.

    Parameters
    ----------
    points : DataFrame
        Table that ``map`` writes.
    when : {"before", "after"}
    """
    names = {label: number for number, label in enumerate(sorted(set(points["label"])))}
    return [
        {
            "x": round(3 + 94 * x, 2),
            "y": round(97 - 94 * y, 2),
            "label": label,
            "colour": _colour(names[label], len(names)),
        }
        for label, x, y in zip(points["label"], points[f"{when}_x"], points[f"{when}_y"], strict=True)
    ]


def _colour(number: int, count: int) -> str:
    """Return one of `count` hues, in two brightnesses that are readable by day and by night."""
    return to_hex(hls_to_rgb(number / count, (0.45, 0.62)[number % 2], 0.65))
