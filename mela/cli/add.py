"""Define ``mela add``: the labels of new people, by the classes that the last run has found."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mela.errors import MelaError
from mela.io.overwriting import require_apart
from mela.runtime.console import log

if TYPE_CHECKING:
    import pandas as pd

LISTING, NAMES, PARAMS = Path("results/labels.csv"), Path("data/names/labels.parquet"), Path("params.yaml")
SHOWN, NAMED = 20, 3
NONE = "none of the classes"


def add(
    folder: Annotated[
        Path, typer.Argument(help="New tasks: a folder <task>/<label>/<image>, or a table of them (csv, tsv, parquet).")
    ],
    out: Annotated[Path, typer.Option(readable=False, help="The csv to write.")] = Path("added.csv"),
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
) -> None:
    """Label the images of new people by the classes of the last run in this folder; nothing is trained.

    Labels of one task get different classes, or none, for which the cluster is empty. The table has the columns task,
    label, cluster, certainty and known_as, which is the name given to the class, or else what most people call it. The
    next `dvc repro` learns from the new people if their images lie in `data.root`.

    Example: `mela add photographs/zoe-and-tom`
    """
    from mela.params import ExtractParams, UseParams

    used = UseParams.read(PARAMS).labels if PARAMS.is_file() else "merged"
    if PARAMS.is_file() and ExtractParams.read(PARAMS).features != "none":
        raise MelaError(
            "add: expected features of MeLa's own network, but extract.features gives others; compute those of the new "
            "images, and call mela.labeling.place_labels"
        )
    require_apart("--out", out, [folder])

    from mela.inference.classifier import FewShotClassifier
    from mela.io.text_tables import write_text_csv
    from mela.labeling.labeler_files import load_labeler
    from mela.labeling.unseen_tasks import place_labels
    from mela.sources.check.layout import find_layout
    from mela.sources.task_folders import read_tasks

    # of which the labeler has learned its classes
    model = Path("models/rounds/sixth.safetensors" if used == "merged" else "models/initial.safetensors")
    classifier, labeler = FewShotClassifier.load(model, device), load_labeler(Path("models/labelers") / used)
    layout = find_layout(folder, "tasks")
    rows = read_tasks(layout.root, None if layout.table is None else layout.root / layout.table)
    features = classifier.transform([layout.root / path for path in rows["path"]])
    placed = place_labels(labeler, features, rows["local_label"], rows["task_id"], names=rows["local_label"])
    called = _names_of_clusters()
    table = placed.assign(
        cluster=placed["cluster"].where(placed["cluster"] >= 0).astype(float),
        certainty=(100 * placed["certainty"]).round(1),
        known_as=[called.get(cluster, "") for cluster in placed["cluster"]],
    )
    write_text_csv(out, table)
    _print(table)
    tasks, found = table["task"].nunique(), int(table["cluster"].notna().sum())
    log.info(f"{out}: {len(table)} labels of {tasks} tasks, {found} of them of a known class")


def _names_of_clusters() -> dict[int, str]:
    """Return the name of each cluster, or what most people call its images; nothing where nobody wrote anything."""
    from mela.io.name_tables import LISTING as SCHEMA
    from mela.io.name_tables import TASK_NAMES, names_by_cluster
    from mela.io.store import read_table
    from mela.io.text_tables import read_text_csv

    if not LISTING.is_file():
        return {}
    listing = read_text_csv(LISTING, SCHEMA)
    given = names_by_cluster(listing)
    if not NAMES.is_file() or not len(read_table(NAMES, TASK_NAMES)):
        return given
    fitted = listing[listing["clustered"] & ~listing["assigned"]]
    written = {
        int(str(cluster).partition(".")[0]): ", ".join(labels.value_counts(sort=True).index[:NAMED])
        for cluster, labels in fitted.groupby("cluster")["label"]
    }
    return written | given


def _print(table: "pd.DataFrame") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table("task", "label", "class", "certainty, %", "known as")
    for row in table.head(SHOWN).to_dict("records"):
        # a missing number is not itself
        cluster = NONE if row["cluster"] != row["cluster"] else f"{row['cluster']:.0f}"
        cells = (row["task"], row["label"], cluster, f"{row['certainty']:.1f}", row["known_as"])
        # as Text: brackets in a name are no markup
        shown.add_row(*(Text(str(cell), overflow="fold") for cell in cells))
    console = Console()
    console.print(shown)
    if len(table) > SHOWN:
        console.print(f"{len(table) - SHOWN} more labels are in the file", highlight=False)
