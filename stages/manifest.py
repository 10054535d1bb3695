"""Freeze the tasks of all splits: draw them from benchmark classes, or take those that came with the data."""

from pathlib import Path

import pandas as pd

from mela.data.sampling import draw_split, given_split
from mela.io import schemas, store
from mela.io.atomic import together
from mela.io.checked_tables import read_truth
from mela.params import PARAMS, TaskParams
from mela.runtime.console import log
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    index: Path = paths.INDEX,
    tasks: Path = paths.TASKS,
    truth: Path = paths.TRUTH,
    train: Path = paths.TRAIN,
    val: Path = paths.VAL,
    test: Path = paths.TEST,
) -> None:
    """Read the image index with given tasks or the truth; write one manifest per split."""
    settings = TaskParams.read(params)
    given = store.read_table(tasks, schemas.TASKS)
    classes = store.read_table(index, schemas.INDEX).merge(read_truth(truth), on="image_id", how="left")
    # a split that is impossible leaves all as they were
    with together():
        for split, path in {"train": train, "val": val, "test": test}.items():
            if len(given):
                manifest, made_from = given_split(given, split), {"split": split}
            else:
                manifest = draw_split(classes[classes["split"] == split], settings, split)
                made_from = settings.model_dump(mode="json", exclude={"train", "val", "test"}) | {"split": split}
            schema = schemas.MANIFEST_OF_DATASETS if "dataset" in manifest else schemas.MANIFEST
            store.write_table(path, manifest, schema, stage="manifest", params=made_from)
            log.info(f"manifest: {split}: {describe(manifest)}")


def describe(manifest: pd.DataFrame) -> str:
    """Describe the tasks and images of a manifest in words."""
    images = manifest["image_id"]
    found = f"{manifest['task_id'].nunique()} tasks, {images.nunique()} images, {len(images)} rows"
    if "dataset" not in manifest:
        return found
    counts = manifest.groupby("dataset")["task_id"].nunique()
    return f"{found}; tasks by data set: {', '.join(f'{name} {count}' for name, count in counts.items())}"


if __name__ == "__main__":
    run(main)
