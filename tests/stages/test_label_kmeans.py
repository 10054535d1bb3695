"""The stage of K-means, which ignores the tasks."""

from pathlib import Path

import numpy as np
from sklearn.preprocessing import normalize

from mela.io import feature_tables, schemas, store
from stages import label_kmeans


def test_kmeans_takes_the_best_of_its_starts(tmp_path: Path) -> None:
    features = normalize(np.random.default_rng(1).normal(size=(60, 3))).astype(np.float32)
    table = tmp_path / "features.parquet"
    feature_tables.write_features(table, [(np.arange(60), features)], 3, stage="extract", params={})
    found = {}
    for starts in (1, 10):
        (tmp_path / "params.yaml").write_text(f"kmeans: {{n_clusters: 6, n_init: {starts}, seed: 0}}\n", "utf-8")
        label_kmeans.main(params=tmp_path / "params.yaml", features=table, labels=tmp_path / "labels.parquet")
        labels = store.read_table(tmp_path / "labels.parquet", schemas.LABELS)["label"].to_numpy()
        found[starts] = sum(((own := features[labels == k]) - own.mean(axis=0)).__pow__(2).sum() for k in range(6))
    assert found[10] < 0.95 * found[1]


def test_kmeans_sees_features_of_length_one(tmp_path: Path) -> None:
    """Two directions at very different lengths: by distance the lengths are the clusters, by direction the classes."""
    directions = np.tile([[1.0, 0.0], [0.0, 1.0]], (20, 1)) + np.random.default_rng(0).normal(0, 0.05, (40, 2))
    features = (directions * np.repeat([1.0, 50.0], 20)[:, None]).astype(np.float32)
    table = tmp_path / "features.parquet"
    feature_tables.write_features(table, [(np.arange(40), features)], 2, stage="extract", params={})
    (tmp_path / "params.yaml").write_text("kmeans: {n_clusters: 2, n_init: 10, seed: 0}\n", encoding="utf-8")
    label_kmeans.main(params=tmp_path / "params.yaml", features=table, labels=tmp_path / "labels.parquet")
    labels = store.read_table(tmp_path / "labels.parquet", schemas.LABELS)["label"].to_numpy()
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1
    assert labels[0] != labels[1]
