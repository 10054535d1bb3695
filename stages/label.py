"""Infer global labels from features and local labels: LearnLabeler."""

from pathlib import Path

import numpy as np
import pandas as pd

from mela import store
from mela.class_means import class_means
from mela.labeler import label_images, learn_labels
from mela.params import PARAMS, LabelerParams
from stages import paths
from stages.run import run


def main(
    params: Path = PARAMS,
    features: Path = paths.FEATURES,
    train: Path = paths.TRAIN,
    labels: Path = paths.MELA_LABELS,
    assignments: Path = paths.ASSIGNMENTS,
    centroids: Path = paths.CENTROIDS,
    metrics: Path = paths.LABEL_METRICS,
    passes: Path = paths.PASSES,
    sizes: Path = paths.SIZES,
) -> None:
    """Read features and training tasks; write labels of images and task classes, centroids, metrics and plot points."""
    settings = LabelerParams.read(params)
    manifest = store.read_table(train, store.MANIFEST)
    classes = class_means(manifest, *store.read_features(features))
    found, image_ids, image_clusters = label_images(
        learn_labels(classes, **settings.model_dump()), manifest["image_id"].to_numpy(), classes.rows_of(manifest)
    )
    made_from = settings.model_dump(mode="json")
    flat = pd.DataFrame({"image_id": image_ids, "label": image_clusters})
    store.write_table(labels, flat, store.LABELS, stage="label", params=made_from)
    by_task = pd.DataFrame(
        {
            "task_id": classes.task_ids,
            "local_label": classes.local_labels,
            "cluster": found.assignments,
            "clustered": found.clustered,
        }
    )
    store.write_table(assignments, by_task, store.ASSIGNMENTS, stage="label", params=made_from)
    store.write_array(centroids, found.centroids.astype(np.float32))

    result = {
        "clusters": len(np.unique(image_clusters)),
        "tasks_clustered": 100 * float(by_task.groupby("task_id")["clustered"].first().mean()),
        "passes": len(found.path),
    }
    store.write_json(metrics, result)
    store.write_csv(passes, found.path_table())
    store.write_csv(sizes, found.sizes_table())
    if not found.settled:
        print(f"label: stopped at labeler.max_passes={settings.max_passes} while clusters were still being removed")
    print("label: {clusters} clusters, {tasks_clustered:.1f}% of tasks clustered, {passes} passes".format(**result))


if __name__ == "__main__":
    run(main)
