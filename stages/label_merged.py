"""Infer global labels by merging task classes: the labels `merged` and `merged_soft`."""

from pathlib import Path

from mela.io import schemas
from mela.labeling.diagnostics import merges_table
from mela.labeling.training_samples import features_in, looks_in
from mela.params import PARAMS, CompareParams, MergingParams
from stages.common import paths
from stages.common.label_files import Files, write_nothing
from stages.common.labeling import write_labels
from stages.common.run import run


def main(
    params: Path = PARAMS,
    last_round: Path = paths.LAST_ROUND,
    features: Path | None = None,
    train: Path = paths.TRAIN,
    sources: Path = paths.TASK_SOURCES,
    names: Path = paths.TASK_NAMES,
    links: Path = paths.LINKS,
    labels: Path = paths.MERGED_LABELS,
    soft_labels: Path = paths.MERGED_SOFT,
    assignments: Path = paths.MERGED_TASKS,
    fitted: Path = paths.MERGED_LABELER,
    metrics: Path = paths.MERGED_METRICS,
    clusters: Path = paths.MERGED_CLUSTERS,
    sizes: Path = paths.MERGED_SIZES,
    merges: Path = paths.MERGES,
) -> None:
    """Read the last round, or other features, and training tasks; write labels, labeler, metrics and plot points."""
    settings, compare = MergingParams.read(params), CompareParams.read(params)
    out = Files(
        labels=labels,
        soft_labels=soft_labels,
        assignments=assignments,
        fitted=fitted,
        metrics=metrics,
        clusters=clusters,
        sizes=sizes,
        steps=merges,
    )
    if not (compare.merged or compare.merged_soft):
        write_nothing("label_merged", out, schemas.MERGES)
        return
    # takes a second, which a wrong parameter need not wait for
    from mela.labeling.merge_labeler import MergeLabeler

    labeler = MergeLabeler(**settings.arguments, soft=True)
    written = names if settings.names else None
    looks, *people = (None, None, None) if features else (looks_in(last_round), sources, written)
    given = features or features_in(last_round)
    write_labels("label_merged", labeler, given, train, links, out, merges_table, looks, *people)


if __name__ == "__main__":
    run(main)
