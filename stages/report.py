"""The run in one table and a few pictures."""

from pathlib import Path

from mela import figures, store
from mela.atomic import replacing, together
from mela.summary import final_name, markdown, summary_rows
from stages import paths
from stages.run import run


def main(
    label: Path = paths.LABEL_METRICS,
    scores: Path = paths.SCORES,
    pretrain: Path = paths.PRETRAIN_METRICS,
    evaluate: Path = paths.EVALUATE_METRICS,
    passes: Path = paths.PASSES,
    merges: Path = paths.MERGES,
    sizes: Path = paths.SIZES,
    embed_curve: Path = paths.EMBED_CURVE,
    pretrain_curve: Path = paths.PRETRAIN_CURVE,
    report: Path = paths.REPORT,
) -> None:
    """Read all metrics and curves; write summary.md and the figures."""
    scored, pretrained, evaluated = store.read_json(scores), store.read_json(pretrain), store.read_json(evaluate)
    rows = summary_rows(store.read_json(label), scored, pretrained, evaluated)
    pictures = {
        "clusters": figures.clusters_figure(store.read_csv(passes), store.read_csv(merges), scored.get("true_classes")),
        "sizes": figures.sizes_figure(store.read_csv(sizes)),
        "curves": figures.curves_figure(store.read_csv(embed_curve), store.read_csv(pretrain_curve)),
    }
    if evaluated["mela"]:
        pictures["accuracy"] = figures.accuracy_figure(evaluated, final_name(pretrained))
    with together():
        store.write_text(report / "summary.md", markdown(rows))
        for name, figure in pictures.items():
            with replacing(report / f"{name}.png") as temporary:
                figure.savefig(temporary, format="png")
    print(f"report: {report}/summary.md; `mela summary` prints it")


if __name__ == "__main__":
    run(main)
