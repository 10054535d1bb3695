"""The run on one page, in one table and a few pictures."""

from pathlib import Path

from mela.io import schemas, store
from mela.io.atomic import together
from mela.io.checked_tables import read_labels
from mela.io.name_tables import IMAGE_NAMES
from mela.io.text_tables import read_text_csv
from mela.params import PARAMS, DataParams, LabelerParams, ReportParams, parameters_text
from mela.reporting.metrics import Evaluation, LabelMetrics, PretrainMetrics, Scores, read_metrics
from mela.reporting.summary import accuracy_table, markdown, overview, sweep_row
from mela.runtime.console import log
from mela.runtime.usage import kept
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    labels: Path = paths.MELA_LABELS,
    weights: Path = paths.SOFT_LABELS,
    label: Path = paths.LABEL_METRICS,
    scores: Path = paths.SCORES,
    pretrain: Path = paths.PRETRAIN_METRICS,
    evaluate: Path = paths.EVALUATE_METRICS,
    passes: Path = paths.PASSES,
    merges: Path = paths.MERGES,
    sizes: Path = paths.SIZES,
    clusters: Path = paths.CLUSTERS,
    purities: Path = paths.PURITIES,
    listing: Path = paths.LISTING,
    image_names: Path = paths.IMAGE_NAMES,
    points: Path = paths.MAP,
    embed_curve: Path = paths.EMBED_CURVE,
    pretrain_curve: Path = paths.PRETRAIN_CURVE,
    report: Path = paths.REPORT,
    page: Path = paths.PAGE,
    metrics: Path = paths.OVERVIEW,
    accuracies: Path = paths.ACCURACIES,
    sweep: Path = paths.SWEEP,
) -> None:
    """Read what the stages found, and images; write the page, a table, figures, and what DVC compares."""
    settings = ReportParams.read(params)
    # takes a second, which a wrong parameter need not wait for
    from mela.reporting.figures import save_figures
    from mela.reporting.page.content import STAGES, TABLES, Run, page_content, run_figures
    from mela.reporting.page.render import render

    tables = {"passes": passes, "merges": merges, "sizes": sizes, "clusters": clusters, "purities": purities}
    tables |= {"points": points, "embed_curve": embed_curve, "pretrain_curve": pretrain_curve, "listing": listing}
    found = Run(
        label=read_metrics(label, LabelMetrics),
        scores=read_metrics(scores, Scores),
        pretrain=read_metrics(pretrain, PretrainMetrics),
        evaluation=read_metrics(evaluate, Evaluation),
        labels=read_labels(labels),
        weights=store.read_table(weights, schemas.SOFT_LABELS),
        files=store.read_table(image_names, IMAGE_NAMES),
        images=store.open_images(images),
        **{name: read_text_csv(path, TABLES[name]) for name, path in tables.items()},
    )
    data, usage = DataParams.read(params), kept(STAGES) if settings.usage else {}
    outcome = (found.label, found.scores, found.evaluation)
    content = page_content(found, settings, data=data, parameters=parameters_text(params), usage=usage)
    with together():
        store.write_text(page, render(content))
        store.write_text(report / "summary.md", markdown(content["summary"]))
        save_figures(report, run_figures(found))
        store.write_json(metrics, overview(*outcome, data=data.described))
        store.write_csv(accuracies, accuracy_table(found.evaluation, found.pretrain))
        store.write_csv(sweep, sweep_row(LabelerParams.read(params), *outcome))
    log.info(f"report: {page}; `mela summary` prints the table")


if __name__ == "__main__":
    run(main)
