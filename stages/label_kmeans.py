"""The ablation: labels by K-means, which sees features and no tasks."""

from pathlib import Path

import pandas as pd
from sklearn.cluster import KMeans

from mela import store
from mela.errors import MelaError
from mela.params import PARAMS, KMeansParams
from stages import paths
from stages.run import run


def main(params: Path = PARAMS, features: Path = paths.FEATURES, labels: Path = paths.KMEANS_LABELS) -> None:
    """Read features; write one label per image."""
    settings = KMeansParams.read(params)
    image_ids, vectors = store.read_features(features)
    if settings.n_clusters > len(vectors):
        raise MelaError(
            f"kmeans.n_clusters: expected at most {len(vectors)}, the number of images, got {settings.n_clusters}"
        )
    found = KMeans(n_clusters=settings.n_clusters, n_init=settings.n_init, random_state=settings.seed).fit(vectors)
    flat = pd.DataFrame({"image_id": image_ids, "label": found.labels_})
    store.write_table(labels, flat, store.LABELS, stage="label_kmeans", params=settings.model_dump(mode="json"))
    print(f"label_kmeans: {settings.n_clusters} clusters of {len(vectors)} images")


if __name__ == "__main__":
    run(main)
