"""Compare one kind of inferred labels, and K-means, with the truth."""

from pathlib import Path

from mela.evaluation.label_scores import score_images, score_labels
from mela.io import store
from mela.io.checked_tables import read_assignments, read_labels, read_manifest, read_truth, require_known
from stages.common.run import run


def main(truth: Path, train: Path, labels: Path, kmeans: Path, assignments: Path, metrics: Path) -> None:
    """Read labels and truth; write how well the labels match it, and under `kmeans` how well K-means does."""
    known, manifest = read_truth(truth), read_manifest(train)
    inferred, plain = read_labels(labels), read_labels(kmeans)
    for path, table in ((labels, inferred), (kmeans, plain)):
        require_known(path, table, manifest)
    found = score_labels(inferred, read_assignments(assignments, manifest), manifest, known)
    store.write_json(metrics, found if known.empty else found | {"kmeans": score_images(plain, known)})


if __name__ == "__main__":
    run(main)
