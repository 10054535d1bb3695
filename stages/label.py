"""Infer global labels from features and local labels, by merging or by pruning."""

from pathlib import Path

import numpy as np
import pandas as pd

from mela.io import feature_tables, schemas, store
from mela.io.atomic import together
from mela.io.checked_tables import read_manifest
from mela.labeling import diagnostics
from mela.labeling.task_classes import manifest_samples
from mela.params import PARAMS, LabelerParams
from mela.runtime.console import log
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    features: Path = paths.FEATURES,
    train: Path = paths.TRAIN,
    labels: Path = paths.MELA_LABELS,
    assignments: Path = paths.ASSIGNMENTS,
    soft_labels: Path = paths.SOFT_LABELS,
    centroids: Path = paths.CENTROIDS,
    fitted: Path = paths.LABELER,
    metrics: Path = paths.LABEL_METRICS,
    passes: Path = paths.PASSES,
    merges: Path = paths.MERGES,
    sizes: Path = paths.SIZES,
    clusters: Path = paths.CLUSTERS,
) -> None:
    """Read features and training tasks; write labels, the fitted labeler, centroids, metrics and plot points."""
    settings = LabelerParams.read(params)
    if settings.merge and settings.q not in settings.usual_q:
        log.info(f"label: labeler.q ({settings.q:g}) has no effect, since labeler.merge is true; it is for pruning")
    # takes a second, which a wrong parameter need not wait for
    from mela.labeling.image_labels import image_weights, label_images, weights_table
    from mela.labeling.labeler_choice import build_labeler
    from mela.labeling.labeler_files import save_labeler

    known_images, vectors = feature_tables.read_features(features)
    samples = manifest_samples(read_manifest(train), known_images, vectors)
    labeler = build_labeler(**settings.model_dump(exclude={"seed"}), random_state=settings.seed, soft=True)
    labeler.fit_tasks(samples)
    image_ids = known_images[samples.index]
    flat = label_images(labeler.class_labels_, len(labeler.cluster_centers_), image_ids, samples.classes)
    weights = image_weights(flat, labeler.class_weights_, image_ids, samples.classes)
    by_image = pd.DataFrame({"image_id": flat.image_ids, "label": flat.labels})
    by_weight = weights_table(flat.image_ids, weights)
    by_task = diagnostics.assignments_table(flat, labeler)
    largest = 100 * float(weights.max(axis=1).toarray().mean())
    result = {"clusters": len(np.unique(flat.labels)), "largest_weight": largest} | diagnostics.label_metrics(labeler)
    result |= diagnostics.merged_counts(labeler.class_labels_)
    result |= {"remark": line} if (line := diagnostics.remark(labeler)) else {}
    with together():
        # labels do not say what they were made from, so that the same ones by other parameters train nothing again
        store.write_table(labels, by_image, schemas.LABELS, stage="label", params={})
        store.write_table(soft_labels, by_weight, schemas.SOFT_LABELS, stage="label", params={})
        store.write_table(
            assignments, by_task, schemas.ASSIGNMENTS, stage="label", params=settings.model_dump(mode="json")
        )
        save_labeler(fitted, labeler, flat.order)
        store.write_array(centroids, labeler.cluster_centers_[flat.order].astype(np.float32))
        store.write_json(metrics, result)
        store.write_csv(passes, diagnostics.passes_table(labeler))
        store.write_csv(merges, diagnostics.merges_table(labeler))
        store.write_csv(sizes, diagnostics.sizes_table(labeler))
        own = by_task.query("clustered")["cluster"].to_numpy()
        store.write_csv(clusters, diagnostics.clusters_table(flat, weights, own))
    for told in filter(None, (line, diagnostics.single_tasks(labeler))):
        log.info(f"label: {told}")
    log.info("label: {clusters} clusters, {tasks_clustered:.1f}% of tasks clustered".format(**result))


if __name__ == "__main__":
    run(main)
