"""Tell which test classes the embedding in use takes for which: true classes, or labels as people wrote them."""

from pathlib import Path

from mela.errors import plain
from mela.evaluation.confusions import confused_labels, confusions
from mela.io import schemas, store
from mela.io.atomic import together
from mela.io.checked_tables import read_manifest, read_truth
from mela.io.name_tables import TASK_NAMES
from mela.io.text_tables import write_text_csv
from mela.params import PARAMS, UseParams
from mela.runtime.console import log
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    truth: Path = paths.TRUTH,
    test: Path = paths.TEST,
    names: Path = paths.TASK_NAMES,
    predictions: Path = paths.PREDICTIONS,
    pairs: Path = paths.CONFUSIONS,
    mistaken: Path = paths.MISTAKEN,
) -> None:
    """Read what test images were taken for, and their truth or their names; write pairs of classes, mistaken images."""
    used, known = UseParams.read(params).labels, read_truth(truth)
    predicted = store.read_table(predictions, schemas.PREDICTIONS)
    own = predicted[predicted["model"] == used]
    if known.empty:
        found, images = confused_labels(own, read_manifest(test), store.read_table(names, TASK_NAMES))
    else:
        found, images = confusions(own, read_manifest(test), known)
    with together():
        write_text_csv(pairs, found)
        write_text_csv(mistaken, images)
    if len(found):
        first = found.iloc[0]
        log.info(
            f"confusions: {plain(first['class'])} is most often taken for {plain(first['taken_for'])}: "
            f"{first['errors']} of {first['queries']} images"
        )


if __name__ == "__main__":
    run(main)
