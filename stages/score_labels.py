"""Compare inferred labels with the truth, where there is one."""

from pathlib import Path
from typing import Any

from mela.evaluation.label_scores import score_clusters, score_images, score_tasks
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
    labels: Path = paths.MELA_LABELS,
    kmeans: Path = paths.KMEANS_LABELS,
    assignments: Path = paths.ASSIGNMENTS,
    metrics: Path = paths.SCORES,
    purities: Path = paths.PURITIES,
) -> None:
    """Read labels and truth; write clustering accuracy, purity, adjusted Rand index and mutual information.

    No parameter changes the result. `params` is there to be checked, as every stage does at its start.
    """
    known = read_truth(truth)
    manifest = read_manifest(train)
    inferred, plain = read_labels(labels), read_labels(kmeans)
    for path, table in ((labels, inferred), (kmeans, plain)):
        require_known(path, table, manifest)
    tasks = read_assignments(assignments, manifest)
    clusters = {"clusters": int(inferred["label"].nunique())}
    if known.empty:
        with together():
            store.write_json(metrics, clusters)
            write_text_csv(purities, score_clusters(inferred, known))
        log.info("score_labels: this data has no ground truth; scoring is left out")
        return
    result: dict[str, Any] = (
        clusters
        | {"true_classes": int(known.merge(manifest, on="image_id")["class"].nunique())}
        | score_tasks(tasks, manifest, known)
        | score_images(inferred, known)
        | {"kmeans": score_images(plain, known)}
    )
    with together():
        store.write_json(metrics, result)
        write_text_csv(purities, score_clusters(inferred, known))
    found, true = result["clusters"], result["true_classes"]
    log.info(f"score_labels: {found} clusters for {true} classes, accuracy {result['accuracy']:.1f}%")


if __name__ == "__main__":
    run(main)
