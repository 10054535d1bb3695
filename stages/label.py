"""Infer global labels by LearnLabeler, the paper's Algorithm 2: the labels `pruned`."""

from pathlib import Path

from mela.io import schemas
from mela.labeling.diagnostics import passes_table
from mela.params import PARAMS, CompareParams, LabelerParams
from stages.common import paths
from stages.common.label_files import Files, write_nothing
from stages.common.labeling import write_labels
from stages.common.run import run


def main(
    params: Path = PARAMS,
    features: Path = paths.FEATURES,
    train: Path = paths.TRAIN,
    links: Path = paths.LINKS,
    labels: Path = paths.PRUNED_LABELS,
    soft_labels: Path = paths.PRUNED_SOFT,
    assignments: Path = paths.PRUNED_TASKS,
    fitted: Path = paths.PRUNED_LABELER,
    metrics: Path = paths.PRUNED_METRICS,
    clusters: Path = paths.PRUNED_CLUSTERS,
    sizes: Path = paths.PRUNED_SIZES,
    passes: Path = paths.PASSES,
) -> None:
    """Read features, training tasks and links; write labels, the fitted labeler, metrics and plot points."""
    settings, compare = LabelerParams.read(params), CompareParams.read(params)
    out = Files(
        labels=labels,
        soft_labels=soft_labels,
        assignments=assignments,
        fitted=fitted,
        metrics=metrics,
        clusters=clusters,
        sizes=sizes,
        steps=passes,
    )
    if not compare.pruned:
        write_nothing("label", out, schemas.PASSES)
        return
    # takes a second, which a wrong parameter need not wait for
    from mela.labeling.learn_labeler import LearnLabeler

    labeler = LearnLabeler(**settings.arguments, soft=True)
    write_labels("label", labeler, features, train, links, out, passes_table)


if __name__ == "__main__":
    run(main)
