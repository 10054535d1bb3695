"""Tell which test classes the embedding in use takes for which, if the truth is known."""

from pathlib import Path

from mela.evaluation.confusions import confusions
from mela.io import schemas, store
from mela.io.atomic import together
from mela.io.checked_tables import read_manifest, read_truth
from mela.io.text_tables import write_text_csv
from mela.params import PARAMS, UseParams
from mela.runtime.console import log
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    truth: Path = paths.TRUTH,
    test: Path = paths.TEST,
    predictions: Path = paths.PREDICTIONS,
    pairs: Path = paths.CONFUSIONS,
    mistaken: Path = paths.MISTAKEN,
) -> None:
    """Read test tasks, what their images were taken for, and truth; write pairs of classes, and mistaken images."""
    used, known = UseParams.read(params).labels, read_truth(truth)
    predicted = store.read_table(predictions, schemas.PREDICTIONS)
    found, images = confusions(predicted[predicted["model"] == used], read_manifest(test), known)
    with together():
        write_text_csv(pairs, found)
        write_text_csv(mistaken, images)
    if known.empty:
        log.info("confusions: this data has no ground truth, so that nobody knows which classes are confused")
    elif len(found):
        first = found.iloc[0]
        log.info(
            f"confusions: {first['class']} is most often taken for {first['taken_for']}: {first['errors']} of "
            f"{first['queries']} images"
        )


if __name__ == "__main__":
    run(main)
