"""List all labels of all people, assign those of held-out tasks to classes, and list images with doubtful labels."""

from pathlib import Path

import numpy as np

from mela.io import store
from mela.io.atomic import together
from mela.io.checked_tables import read_assignments, read_manifest
from mela.io.name_tables import TASK_NAMES
from mela.io.text_tables import write_text_csv
from mela.labeling.given_names import read_given_names, with_class_names
from mela.labeling.training_samples import features_in, read_samples
from mela.labeling.user_tables import features_that_are_given
from mela.models.features import feature_batches
from mela.models.files import load_model
from mela.params import PARAMS, ExtractParams, RuntimeParams, UseParams
from mela.runtime.console import log
from stages.common import paths
from stages.common.computing import computing
from stages.common.people_files import doubtful_images, held_out_tasks
from stages.common.processes import run_shared


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    val: Path = paths.VAL,
    test: Path = paths.TEST,
    tasks: Path = paths.TASKS,
    features: Path = paths.FEATURES,
    last_round: Path = paths.LAST_ROUND,
    given: Path = paths.GIVEN_FEATURES,
    model: Path = paths.INITIAL,
    merged_model: Path = paths.MERGED_EMBEDDING,
    task_names: Path = paths.TASK_NAMES,
    image_names: Path = paths.IMAGE_NAMES,
    class_names: Path = paths.CLASS_NAMES,
    labels: Path = paths.LISTING,
    wrong_labels: Path = paths.WRONG_LABELS,
) -> None:
    """Read the labeler in use, tasks, names, and images of held-out tasks; write tables of labels and of doubts."""
    file, used = ExtractParams.read(params).features, UseParams.read(params).labels
    # of which its labeler has learned the classes
    learned, model = (features_in(last_round), merged_model) if used == "merged" else (features, model)
    names, called = store.read_table(task_names, TASK_NAMES), read_given_names(class_names)
    held_out = held_out_tasks(val, test, tasks, names)
    known = np.unique(np.concatenate([[], *(manifest["image_id"] for manifest in held_out.values())])).astype(np.int64)
    parts = [np.empty((0, 0), dtype=np.float32)]
    with computing("assign", "images", RuntimeParams.read(params)) as (device, compute, watch):
        if len(known) and file != "none":
            known, *parts = features_that_are_given(given / file, known, len(store.open_images(images)))
        elif len(known):
            packed = store.open_images(images)
            backbone = load_model(model, device, packed)
            parts = [found for _, found in feature_batches(backbone, packed, known, team=compute.team, watch=watch)]
        if not compute.team.leads:
            return
    # takes a second, which a wrong parameter need not wait for
    from mela.labeling.label_listing import listing
    from mela.labeling.labeler_files import load_labeler

    manifest = read_manifest(train)
    samples, _ = read_samples(manifest, learned)
    assigned = read_assignments(paths.LABELS / f"{used}_tasks.parquet", manifest)
    labeler = load_labeler(paths.LABELERS / used)
    table = listing(labeler, samples, assigned, held_out, names, known, np.concatenate(parts))
    doubts = doubtful_images(manifest, features, assigned, names, image_names)
    with together():
        write_text_csv(labels, with_class_names(table, called))
        write_text_csv(wrong_labels, doubts)
    new = table[table["assigned"]]
    none = int((~new["clustered"]).sum())
    log.info(f"assign: {len(table)} labels, {len(new)} of them of held-out tasks, {none} of these none of the classes")


if __name__ == "__main__":
    run_shared(main)
