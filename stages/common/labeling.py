"""Write what both stages that infer labels find: labels of images and of task classes, and diagnostics."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from mela.io import schemas, store
from mela.io.atomic import together
from mela.io.checked_tables import read_manifest
from mela.labeling import diagnostics
from mela.labeling.training_samples import read_samples
from mela.runtime.console import log
from stages.common import paths
from stages.common.label_files import Files

if TYPE_CHECKING:
    from mela.labeling.task_labeler import TaskLabeler


def write_labels(
    stage: str,
    labeler: "TaskLabeler",
    features: Path,
    train: Path,
    links: Path,
    out: Files,
    steps: "Callable[[TaskLabeler], pd.DataFrame]",
    looks: Path | None = None,
    sources: Path | None = None,
    names: Path | None = None,
) -> None:
    """Infer labels of the training tasks and write them; `steps` tells how the number of clusters was found.

    What people say of these labels, in the table of links, is kept to.
    """
    from mela.labeling.correction_tables import links_between
    from mela.labeling.image_labels import image_weights, label_images, weights_table
    from mela.labeling.labeler_files import save_labeler

    samples, known_images = read_samples(read_manifest(train), features, looks, sources, names)
    # tasks that are not the project's own, as the benchmark has, are none that people speak of
    said = links_between(store.read_table(links, schemas.LINKS), samples) if train == paths.TRAIN else None
    labeler.fit_tasks(samples, said)
    image_ids = known_images[samples.index]
    flat = label_images(labeler.learned_labels, len(labeler.cluster_centers_), image_ids, samples.classes)
    weights = image_weights(flat, labeler.class_weights_, image_ids, samples.classes)
    by_image = pd.DataFrame({"image_id": flat.image_ids, "label": flat.labels})
    by_task = diagnostics.assignments_table(flat, labeler)
    largest = 100 * float(weights.max(axis=1).toarray().mean())
    result = {"clusters": len(np.unique(flat.labels)), "largest_weight": largest} | diagnostics.label_metrics(labeler)
    result |= diagnostics.merged_counts(labeler.class_labels_)
    result |= {"remark": line} if (line := diagnostics.remark(labeler)) else {}
    with together():
        # tables do not say what they were made from, so that the same labels by other parameters train nothing again
        store.write_table(out.labels, by_image, schemas.LABELS, stage="label", params={})
        by_weight = weights_table(flat.image_ids, weights)
        store.write_table(out.soft_labels, by_weight, schemas.SOFT_LABELS, stage="label", params={})
        store.write_table(out.assignments, by_task, schemas.ASSIGNMENTS, stage="label", params={})
        save_labeler(out.fitted, labeler, flat.order)
        store.write_json(out.metrics, result)
        store.write_csv(out.steps, steps(labeler))
        store.write_csv(out.sizes, diagnostics.sizes_table(labeler))
        own = by_task.query("clustered")["cluster"].to_numpy()
        store.write_csv(out.clusters, diagnostics.clusters_table(flat, weights, own))
    if said is not None:
        log.info(f"{stage}: kept to {len(said.same) + len(said.different)} corrections")
    for told in filter(None, (line, diagnostics.single_tasks(labeler), diagnostics.named(labeler))):
        log.info(f"{stage}: {told}")
    log.info("{stage}: {clusters} clusters, {tasks_clustered:.1f}% of tasks clustered".format(stage=stage, **result))
