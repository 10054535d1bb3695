"""Place some classes in two dimensions."""

import numpy as np
import pandas as pd

from mela.data.array_types import AnyFeatures, Floats


def draw_points(labels: pd.DataFrame, *, classes: int, images: int, seed: int) -> pd.DataFrame:
    """Draw some classes at random, and some images of each.

    Parameters
    ----------
    labels : DataFrame
        Columns image_id and label.
    classes, images : int
        At most so many classes, and images of each.
    seed : int

    Returns
    -------
    DataFrame
        Columns image_id and label, by label and then by image.
    """
    generator = np.random.default_rng(seed)
    names = np.unique(labels["label"])
    chosen = generator.choice(names, size=min(classes, len(names)), replace=False)
    shuffled = labels.iloc[generator.permutation(len(labels))]
    drawn = shuffled[shuffled["label"].isin(chosen)].groupby("label").head(images)
    return drawn[["image_id", "label"]].sort_values(["label", "image_id"], ignore_index=True)


def neighbourhoods(features: AnyFeatures, *, seed: int) -> Floats:
    """Place points by the directions of their features (t-SNE, van der Maaten and Hinton, 2008).

    Parameters
    ----------
    features : (n, m)
    seed : int

    Returns
    -------
    float64 (n, 2)
        Between 0 and 1, with equal units on both axes; fewer than four points are on a line.
    """
    n = len(features)
    if n < 4:
        return np.stack([np.linspace(0, 1, n), np.full(n, 0.5)], axis=1)
    from sklearn.manifold import TSNE
    from sklearn.preprocessing import normalize

    tsne = TSNE(
        init="pca" if min(features.shape) > 1 else "random", perplexity=min(20.0, (n - 1) / 3), random_state=seed
    )
    points = tsne.fit_transform(normalize(features)).astype(np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    return 0.5 + (points - (low + high) / 2) / max(float((high - low).max()), 1e-12)
