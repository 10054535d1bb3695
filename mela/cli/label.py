"""Define ``mela label``: global labels for users' features and tasks, without the rest of the pipeline."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mela.errors import MelaError
from mela.io.overwriting import require_apart
from mela.runtime.console import log

if TYPE_CHECKING:
    import pandas as pd

SUFFIXES = (".parquet", ".csv")
SEEDS = 2**32
# what the labeler calls its parameters, and what they are called here
NAMES = {
    "set labeler.collisions to assign": "give --collisions assign",
    "set merging.collisions to assign": "give --collisions assign",
    "labeler.n_clusters": "--n-clusters",
    "labeler.min_count": "--min-count",
    "merging.min_count": "--min-count",
    "labeler.q": "--q",
}


def label(
    features: Annotated[
        Path, typer.Argument(help="Parquet: image_id, and feature or f0, f1...; or .npy: a row per image, from 0.")
    ],
    tasks: Annotated[Path, typer.Argument(help="Parquet or csv: task_id, image_id, local_label, perhaps source.")],
    out: Annotated[Path, typer.Option(help="Labels of images: .parquet or .csv.")] = Path("labels.parquet"),
    tasks_out: Annotated[
        Path | None, typer.Option(help="Clusters of local labels; default: OUT with _tasks added to its name.")
    ] = None,
    merge: Annotated[
        bool, typer.Option(help="Merge task classes, or infer labels by Algorithm 2 of the paper.")
    ] = True,
    n_clusters: Annotated[
        int | None, typer.Option(help="Algorithm 2: clusters to start from.", show_default="300")
    ] = None,
    q: Annotated[
        float | None, typer.Option(help="Algorithm 2: a smaller one removes more clusters.", show_default="6.5")
    ] = None,
    collisions: Annotated[
        Literal["drop", "assign"], typer.Option(help="Tasks two of whose labels have one nearest cluster.")
    ] = "drop",
    min_count: Annotated[int, typer.Option(help="Tasks that a class needs.")] = 1,
    corrections: Annotated[
        Path | None,
        typer.Option(help="CSV of labels that are the same or not: task, label, other_task, other_label, answer."),
    ] = None,
    names: Annotated[
        bool, typer.Option("--names", help="Local labels are names, which count if people agree on them.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
) -> None:
    """Infer global labels from features and independently labelled tasks, without the rest of the pipeline.

    Example: `mela label features.parquet tasks.csv --out labels.csv`
    """
    tasks_out = tasks_out or out.parent / f"{out.stem}_tasks{out.suffix}"
    for path in (out, tasks_out):
        if path.suffix.lower() not in SUFFIXES:
            raise MelaError(f"{path}: expected a name that ends in {' or '.join(SUFFIXES)}; give another")
    if out == tasks_out:
        raise MelaError(f"{out}: expected two files, got one name for --out and --tasks-out; give another")
    if not 0 <= seed < SEEDS:
        raise MelaError(f"--seed: expected an integer from 0 to {SEEDS - 1}, got {seed}; give another")
    inputs = (features, tasks, *([corrections] if corrections else []))
    require_apart("--out", out, inputs)
    require_apart("--tasks-out", tasks_out, inputs)
    if corrections and not corrections.is_file():
        raise MelaError(f"--corrections: expected a file, found none at {corrections}; correct the name")
    import pandas as pd

    from mela.io.atomic import together
    from mela.labeling import user_tables
    from mela.labeling.correction_tables import links_by_name, read_corrections
    from mela.labeling.diagnostics import label_metrics, named, remark, single_tasks
    from mela.labeling.image_labels import label_images
    from mela.labeling.labeler_choice import build_labeler
    from mela.reporting.summary import share

    image_ids, vectors = user_tables.read_user_features(features)
    samples = user_tables.match(user_tables.read_tasks(tasks), image_ids, vectors, where=str(features))
    if names and merge:
        samples = replace(samples, written=samples.local_labels.astype(str))
    links = links_by_name(read_corrections(corrections) if corrections else [], samples.names, samples.starts)
    pruning: dict[str, Any] = {
        name: value for name, value in {"n_clusters": n_clusters, "q": q}.items() if value is not None
    }
    given = {"collisions": collisions, "min_count": min_count, "random_state": seed}
    labeler = build_labeler(merge=merge, **pruning, **given)
    try:
        labeler.fit_tasks(samples, links)
    except MelaError as error:
        message = _renamed(str(error))
        if n_clusters is None:
            message = message.replace("--n-clusters is", "--n-clusters is by default")
        raise MelaError(message) from None
    if merge:
        for name in pruning:
            log.info(f"{NAMES[f'labeler.{name}']} has no effect, since task classes are merged; it is for --no-merge")
    elif names:
        log.info("--names has no effect with --no-merge, since Algorithm 2 knows no names")
    flat = label_images(labeler.class_labels_, len(labeler.cluster_centers_), samples.index, samples.classes)
    clusters = pd.Series(flat.renumber(labeler.class_clusters_), dtype="Int64").mask(labeler.class_labels_ < 0)
    columns = {"task_id": samples.task_ids, "local_label": samples.local_labels, "cluster": clusters}
    with together():
        _write(out, pd.DataFrame({"image_id": image_ids[flat.image_ids], "label": flat.labels}))
        _write(tasks_out, pd.DataFrame(columns))
    metrics = label_metrics(labeler)
    log.info(f"{out}: {len(flat.image_ids)} images, {len(set(flat.labels.tolist()))} clusters")
    log.info(f"{tasks_out}: {len(samples.task_ids)} local labels, {metrics['tasks_clustered']:.1f}% of tasks clustered")
    precision = share(metrics["pair_precision"], metrics["pair_precision_error"])
    log.info(f"pair precision: {precision or 'too few pairs to tell'}, judged by the tasks alone")
    if "expected_ari" in metrics:
        log.info(f"expected adjusted Rand index: {metrics['expected_ari']:.2f}, judged by the tasks and the features")
    for told in filter(None, (single_tasks(labeler), named(labeler))):
        log.info(told)
    if line := remark(labeler):
        log.info(f"remark: {_renamed(line)}")


def _renamed(message: str) -> str:
    from mela.labeling.merging import OTHERWISE

    message = message.replace(OTHERWISE, "give --no-merge")
    for name, option in NAMES.items():
        message = message.replace(name, option)
    return message


def _write(path: Path, table: "pd.DataFrame") -> None:
    from mela.io.atomic import replacing
    from mela.io.text_tables import write_text_csv

    if path.suffix.lower() == ".csv":
        write_text_csv(path, table)
        return
    with replacing(path) as temporary:
        table.to_parquet(temporary, index=False)
