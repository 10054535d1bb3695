"""Show the run on one page, in one table and a few figures."""

from pathlib import Path

from mela.io import schemas, store
from mela.io.atomic import together
from mela.io.checked_tables import read_labels
from mela.io.name_tables import IMAGE_NAMES
from mela.io.text_tables import read_text_csv
from mela.params import PARAMS, ROUNDS, DataParams, LabelerParams, ReportParams, UseParams, parameters_text
from mela.reporting.metrics import PretrainMetrics, RoundMetrics, read_metrics
from mela.reporting.outcome import read_outcome, require_used
from mela.reporting.summary import accuracy_table, overview, sweep_row, tables
from mela.runtime.console import log
from stages.common import paths
from stages.common.embedding_files import trained
from stages.common.run import run


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    merged: Path = paths.MERGED_METRICS,
    pruned: Path = paths.PRUNED_METRICS,
    scores: Path = paths.SCORES,
    evaluate: Path = paths.EVALUATE_METRICS,
    passes: Path = paths.PASSES,
    merges: Path = paths.MERGES,
    listing: Path = paths.LISTING,
    wrong_labels: Path = paths.WRONG_LABELS,
    image_names: Path = paths.IMAGE_NAMES,
    points: Path = paths.MAP,
    confusions: Path = paths.CONFUSIONS,
    mistaken: Path = paths.MISTAKEN,
    embed_curve: Path = paths.EMBED_CURVE,
    report: Path = paths.REPORT,
    page: Path = paths.PAGE,
    metrics: Path = paths.OVERVIEW,
    accuracy: Path = paths.ACCURACIES,
    sweep: Path = paths.SWEEP,
) -> None:
    """Read what the stages found, and images; write the page, tables, figures, and what DVC compares."""
    settings, used, data = ReportParams.read(params), UseParams.read(params).labels, DataParams.read(params)
    # takes a second, which a wrong parameter need not wait for
    from mela.reporting.drawings import drawing
    from mela.reporting.folder import write_folder
    from mela.reporting.page.assembly import TABLES, Run, page_content, run_figures
    from mela.reporting.page.render import render

    outcome = read_outcome({"merged": merged, "pruned": pruned}, scores, evaluate, data.described)
    require_used(outcome, used)
    training, files = trained(used), {"passes": passes, "merges": merges, "points": points, "listing": listing}
    files |= {name: paths.LABELING / f"{used}_{name}.csv" for name in ("sizes", "clusters")}
    files |= {"purities": paths.SCORES.with_name(f"{used}.csv"), "confusions": confusions, "mistaken": mistaken}
    files |= {"embed_curve": embed_curve, "pretrain_curve": training.curve, "wrong_labels": wrong_labels}
    rounds = {name: read_metrics(paths.ROUNDS / f"{name}.json", RoundMetrics, may_be_off=True) for name in ROUNDS}
    found = Run(
        outcome=outcome,
        used=used,
        pretrain=read_metrics(training.metrics, PretrainMetrics),
        rounds={name: metrics for name, metrics in rounds.items() if metrics},
        labels=read_labels(paths.LABELS / f"{used}.parquet"),
        weights=store.read_table(paths.LABELS / f"{used}_soft.parquet", schemas.SOFT_LABELS),
        files=store.read_table(image_names, IMAGE_NAMES),
        images=store.open_images(images),
        **{name: read_text_csv(path, TABLES[name]) for name, path in files.items()},
    )
    drawn = {name: drawing(figure, name) for name, figure in run_figures(found).items()}
    content = page_content(found, settings, drawn=drawn, data=data, parameters=parameters_text(params))
    with together():
        store.write_text(page, render(content))
        write_folder(report, tables(outcome), drawn)
        store.write_json(metrics, overview(outcome))
        store.write_csv(accuracy, accuracy_table(outcome.evaluation))
        store.write_csv(sweep, sweep_row(LabelerParams.read(params), outcome))
    log.info(f"report: {page}; `mela summary` prints the table")


if __name__ == "__main__":
    run(main)
