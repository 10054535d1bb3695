"""Compare all kinds of inferred labels with the truth, if it is known."""

from pathlib import Path

import pandas as pd

from mela.evaluation.label_scores import score_clusters, score_labels
from mela.io import store
from mela.io.atomic import together
from mela.io.checked_tables import read_assignments, read_labels, read_manifest, read_truth, require_known
from mela.io.text_tables import write_text_csv
from mela.params import PARAMS
from mela.runtime.console import log
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    truth: Path = paths.TRUTH,
    train: Path = paths.TRAIN,
    merged: Path = paths.MERGED_LABELS,
    merged_tasks: Path = paths.MERGED_TASKS,
    pruned: Path = paths.PRUNED_LABELS,
    pruned_tasks: Path = paths.PRUNED_TASKS,
    kmeans: Path = paths.KMEANS_LABELS,
    metrics: Path = paths.SCORES,
    merged_purities: Path = paths.MERGED_PURITIES,
    pruned_purities: Path = paths.PRUNED_PURITIES,
) -> None:
    """Read labels and truth; write clustering accuracy, purity, adjusted Rand index and mutual information of each.

    No parameter changes the result. `params` is there to be checked, as every stage does at its start.
    """
    known, manifest = read_truth(truth), read_manifest(train)
    files = {"merged": merged, "pruned": pruned, "kmeans": kmeans}
    # labels that are off are in no row
    tables = {name: table for name, path in files.items() if len(table := read_labels(path))}
    for name, table in tables.items():
        require_known(files[name], table, manifest)
    tasks = {
        name: read_assignments(path, manifest)
        for name, path in {"merged": merged_tasks, "pruned": pruned_tasks}.items()
        if name in tables
    }
    found = {name: score_labels(table, tasks.get(name), manifest, known) for name, table in tables.items()}
    nothing = pd.DataFrame({"image_id": [], "label": []}, dtype="int64")
    with together():
        store.write_json(metrics, found)
        for name, path in {"merged": merged_purities, "pruned": pruned_purities}.items():
            write_text_csv(path, score_clusters(tables.get(name, nothing), known))
    if known.empty:
        log.info("score_labels: this data has no ground truth; scoring is left out")
        return
    for name, scores in found.items():
        log.info(
            "score_labels: {}: {clusters} clusters for {true_classes} classes, ARI {ari:.3f}".format(name, **scores)
        )


if __name__ == "__main__":
    run(main)
