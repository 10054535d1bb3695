"""What the stages that infer labels write of people who differ."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from mela import MergeLabeler
from mela.io import schemas, store
from mela.io.feature_tables import write_features
from mela.labeling.diagnostics import merges_table
from stages.common.label_files import Files
from stages.common.labeling import write_labels
from studies.labels.cameras import simulated


def test_images_get_the_clusters_that_networks_learn_and_task_classes_those_told_apart(tmp_path: Path) -> None:
    samples, _ = simulated(gain=0.5, objects=0.5, seed=0)
    images, of = samples.index, samples.classes
    roles = np.where(images % 2, "support", "query")
    columns = {"task_id": samples.task_ids[of], "image_id": images, "local_label": samples.local_labels[of]}
    manifest = pd.DataFrame(columns | {"role": roles})
    store.write_table(tmp_path / "train.parquet", manifest, schemas.MANIFEST, stage="manifest", params={})
    features, train = tmp_path / "features.parquet", tmp_path / "train.parquet"
    write_features(features, [(images, samples.features.astype(np.float32))], 24, stage="extract", params={})
    out = Files(**{field.name: tmp_path / field.name for field in fields(Files)})
    links = tmp_path / "links.parquet"
    store.write_table(links, schemas.LINKS.empty_table(), schemas.LINKS, stage="corrections", params={})
    labeler = MergeLabeler(soft=True)
    write_labels("label_merged", labeler, features, train, links, out, merges_table)
    effects = labeler.effects_
    assert effects is not None
    by_image = store.read_table(out.labels, schemas.LABELS)["label"].to_numpy()
    cut = effects.cut[labeler.task_classes_.classes]
    assert adjusted_rand_score(cut, by_image[labeler.task_classes_.index]) == 1
    assert store.read_json(out.metrics)["clusters"] == by_image.max() + 1 == effects.cut.max() + 1
    told = store.read_table(out.assignments, schemas.ASSIGNMENTS)
    assert not told.duplicated(["task_id", "cluster"]).any()
    # what was not told apart has the same number in both
    same = told["cluster"].to_numpy() < by_image.max() + 1
    assert same.mean() > 0.9
    first = labeler.task_classes_.index[np.searchsorted(labeler.task_classes_.classes, np.arange(len(told)))]
    np.testing.assert_array_equal(told["cluster"][same], by_image[first][same])
