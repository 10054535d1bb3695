"""Label images by K-means on features without tasks: the ablation."""

from pathlib import Path

import pandas as pd
from threadpoolctl import threadpool_limits

from mela.io import feature_tables, schemas, store
from mela.params import PARAMS, KMeansParams
from mela.runtime.console import log
from stages.common import paths
from stages.common.run import run


def main(params: Path = PARAMS, features: Path = paths.FEATURES, labels: Path = paths.KMEANS_LABELS) -> None:
    """Read features; write one label per image."""
    settings = KMeansParams.read(params)
    # takes a second, which a wrong parameter need not wait for
    from sklearn.cluster import KMeans
    from sklearn.preprocessing import normalize

    image_ids, vectors = feature_tables.read_features(features)
    n_clusters = min(settings.n_clusters, len(vectors))
    if n_clusters < settings.n_clusters:
        log.info(
            f"label_kmeans: kmeans.n_clusters={settings.n_clusters} is more than there are images; taking {n_clusters}"
        )
    # length 1, as the features that every method is tested on
    vectors = normalize(vectors, copy=False)
    # with several threads the sums, and so the last bits, depend on which finishes first
    with threadpool_limits(1):
        kmeans = KMeans(n_clusters=n_clusters, n_init=settings.n_init, random_state=settings.seed, copy_x=False)
        found = kmeans.fit(vectors)
    flat = pd.DataFrame({"image_id": image_ids, "label": found.labels_})
    # the same labels by other parameters shall be the same file, which trains nothing again
    store.write_table(labels, flat, schemas.LABELS, stage="label_kmeans", params={})
    log.info(f"label_kmeans: {n_clusters} clusters of {len(vectors)} images")


if __name__ == "__main__":
    run(main)
