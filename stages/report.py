"""The run on one page, in one table and a few pictures."""

from pathlib import Path

from mela import store
from mela.atomic import replacing, together
from mela.page.content import Run, page_content, run_figures
from mela.page.render import render
from mela.params import PARAMS, ReportParams, parameters_text
from mela.summary import markdown
from mela.usage import kept
from stages import paths
from stages.run import run

LABELS = ("label", "label_kmeans", "label_oracle", "score_labels")
BEFORE = ("images", "manifest", "embed", "extract", *LABELS, "pretrain", "evaluate", "map")


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
    points: Path = paths.MAP,
    embed_curve: Path = paths.EMBED_CURVE,
    pretrain_curve: Path = paths.PRETRAIN_CURVE,
    report: Path = paths.REPORT,
    page: Path = paths.PAGE,
) -> None:
    """Read what the stages found, and images; write report.html, and summary.md and the figures beside it."""
    settings = ReportParams.read(params)
    found = Run(
        label=store.read_json(label),
        scores=store.read_json(scores),
        pretrain=store.read_json(pretrain),
        evaluation=store.read_json(evaluate),
        passes=store.read_csv(passes),
        merges=store.read_csv(merges),
        sizes=store.read_csv(sizes),
        clusters=store.read_csv(clusters),
        purities=store.read_csv(purities),
        points=store.read_csv(points),
        embed_curve=store.read_csv(embed_curve),
        pretrain_curve=store.read_csv(pretrain_curve),
        labels=store.read_table(labels, store.LABELS),
        weights=store.read_table(weights, store.SOFT_LABELS),
        images=store.open_images(images),
    )
    usage = kept(BEFORE) if settings.usage else {}
    content = page_content(found, settings, parameters_text(params), usage)
    with together():
        store.write_text(page, render(content))
        store.write_text(report / "summary.md", markdown(content["summary"]))
        for name, figure in run_figures(found).items():
            with replacing(report / f"{name}.png") as temporary:
                figure.savefig(temporary, format="png")
    print(f"report: {page}; `mela summary` prints the table")


if __name__ == "__main__":
    run(main)
