"""Take the true classes as labels: the upper bound, which no other training may see."""

from pathlib import Path

import numpy as np
import pandas as pd

from mela.io import schemas, store
from mela.io.checked_tables import read_manifest, read_truth
from mela.params import PARAMS
from mela.runtime.console import log
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    truth: Path = paths.TRUTH,
    train: Path = paths.TRAIN,
    labels: Path = paths.ORACLE_LABELS,
) -> None:
    """Read the truth; write the true class of every image of a training task (no row where the truth is unknown).

    No parameter changes the result. `params` is there to be checked, as every stage does at its start.
    """
    image_ids = read_manifest(train)["image_id"].drop_duplicates().sort_values()
    known = read_truth(truth).merge(image_ids, on="image_id").sort_values("image_id")
    names, numbers = np.unique(known["class"].to_numpy(dtype=str), return_inverse=True)
    flat = pd.DataFrame({"image_id": known["image_id"], "label": numbers})
    store.write_table(labels, flat, schemas.LABELS, stage="label_oracle", params={})
    log.info(
        f"label_oracle: {len(names)} classes of {len(flat)} images" if len(flat) else "label_oracle: no ground truth"
    )


if __name__ == "__main__":
    run(main)
