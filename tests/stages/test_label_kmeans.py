"""The stage of K-means, which ignores the tasks."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import normalize

from mela.io import feature_tables, schemas, store
from stages import label_kmeans


def kmeans(folder: Path, features: npt.NDArray[np.float32], n_clusters: int, n_init: int) -> npt.NDArray[np.int64]:
    """Labels that the stage gives these features."""
    table, params, labels = folder / "features.parquet", folder / "params.yaml", folder / "labels.parquet"
    batches = [(np.arange(len(features)), features)]
    feature_tables.write_features(table, batches, features.shape[1], stage="extract", params={})
    params.write_text(f"kmeans: {{n_clusters: {n_clusters}, n_init: {n_init}, seed: 0}}\n", encoding="utf-8")
    label_kmeans.main(params=params, features=table, labels=labels)
    return store.read_table(labels, schemas.LABELS)["label"].to_numpy()


def test_kmeans_takes_the_best_of_its_starts(tmp_path: Path) -> None:
    features = normalize(np.random.default_rng(1).normal(size=(60, 3))).astype(np.float32)
    found = {}
    for starts in (1, 10):
        labels = kmeans(tmp_path, features, 6, starts)
        found[starts] = sum(((own := features[labels == k]) - own.mean(axis=0)).__pow__(2).sum() for k in range(6))
    assert found[10] < 0.95 * found[1]


def test_kmeans_sees_features_of_length_one(tmp_path: Path) -> None:
    """Two directions at very different lengths: by distance the lengths are the clusters, by direction the classes."""
    directions = np.tile([[1.0, 0.0], [0.0, 1.0]], (20, 1)) + np.random.default_rng(0).normal(0, 0.05, (40, 2))
    labels = kmeans(tmp_path, (directions * np.repeat([1.0, 50.0], 20)[:, None]).astype(np.float32), 2, 10)
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1
    assert labels[0] != labels[1]
