"""Pack the images of the chosen data set, and set its true classes, if known, aside."""

from pathlib import Path

import pandas as pd

from mela.io import schemas, store
from mela.io.atomic import replacing, together
from mela.params import PARAMS, DataParams, TaskParams
from mela.runtime.console import log
from mela.runtime.progress import watched
from mela.sources.data_warnings import remarks
from mela.sources.duplicate_images import recorded, refuse_contradictions
from mela.sources.open import open_source
from mela.sources.packing import pack_images, shuffled_ids
from mela.sources.split_overlaps import between_splits
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    index: Path = paths.INDEX,
    tasks: Path = paths.TASKS,
    truth: Path = paths.TRUTH,
) -> None:
    """Read raw images from data.root (or render glyphs); write packed images, index, given tasks, and the truth."""
    data = DataParams.read(params)
    source = open_source(data, shots=TaskParams.read(params).shots)
    ids = shuffled_ids(len(source), data.seed)
    made_from = data.made_from()

    rows = pd.DataFrame({"image_id": ids, "split": source.splits, "source": source.sources}).sort_values("image_id")
    classes = pd.DataFrame(
        {"image_id": ids, "class": source.classes or []} if source.classes else {"image_id": [], "class": []}
    )
    truth_schema = schemas.TRUTH
    if source.datasets is not None:
        classes, truth_schema = classes.assign(dataset=source.datasets), schemas.TRUTH_OF_DATASETS
    given = pd.DataFrame(columns=schemas.TASKS.names)
    if source.tasks is not None:
        given = source.tasks.assign(image_id=ids[source.tasks["image_id"]])
    with together():
        with replacing(images) as temporary, watched("images", "images") as watch:
            looked = recorded(source)
            pack_images(temporary, looked, ids, size=data.image_size, channels=data.channels, watch=watch)
            refuse_contradictions(looked)
            repeated = between_splits(store.open_images(temporary), ids, source.splits, source.sources)
        for path, table, schema in [
            (index, rows, schemas.INDEX),
            (truth, classes.sort_values("image_id"), truth_schema),
            (tasks, given, schemas.TASKS),
        ]:
            store.write_table(path, table, schema, stage="images", params=made_from)
    if repeated:
        log.info(f"images: {repeated}")
    for line in remarks(source, data):
        log.info(f"images: {line}")
    counts = ", ".join(f"{count} {split}" for split, count in pd.Series(source.splits).value_counts().items())
    log.info(f"images: {len(source)} of {data.image_size} x {data.image_size} x {data.channels}, {counts}")


if __name__ == "__main__":
    run(main)
