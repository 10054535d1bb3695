"""Give each image one label, or shares of several, from the clusters of its task classes."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from mela.data.array_types import Ints


@dataclass(frozen=True, kw_only=True)
class ImageLabels:
    """Hold one label per image.

    Attributes
    ----------
    image_ids : int64 (n_labelled,)
        Images that occur in a clustered task, in rising order.
    labels : int64 (n_labelled,)
        Labels from 0 to the number of labels less 1.
    order : int64 (n_clusters,)
        The clusters renumbered: label v is cluster ``order[v]``; clusters that label no image come last.
    """

    image_ids: Ints
    labels: Ints
    order: Ints

    def renumber(self, clusters: Ints) -> Ints:
        """Return the new numbers (n,) of clusters (n,)."""
        return np.argsort(self.order)[clusters]


def label_images(labels: Ints, n_clusters: int, image_ids: Ints, classes: Ints) -> ImageLabels:
    """Give each image the cluster that most of its task classes have, the smallest one at a tie.

    Parameters
    ----------
    labels : int64 (n_classes,)
        Cluster of each task class; -1 does not vote.
    n_clusters : int
    image_ids, classes : int64 (n_samples,)
        Each sample's image and task class.
    """
    given = labels[classes]
    votes = given >= 0
    images, rows = np.unique(image_ids[votes], return_inverse=True)
    # one number per image and label, which sorts many times faster than pairs do
    pairs, counts = np.unique(rows * n_clusters + given[votes], return_counts=True)
    rows, voted = np.divmod(pairs, n_clusters)
    winners = np.lexsort((voted, -counts, rows))[np.flatnonzero(np.diff(rows, prepend=-1))]
    used, compact = np.unique(voted[winners], return_inverse=True)
    return ImageLabels(
        image_ids=images,
        labels=compact.astype(np.int64),
        order=np.concatenate([used, np.setdiff1d(np.arange(n_clusters), used)]),
    )


def image_weights(flat: ImageLabels, class_weights: csr_array, image_ids: Ints, classes: Ints) -> csr_array:
    """Return how much each labelled image belongs to each cluster: the mean over its task classes.

    An image that is "maple" in half of its tasks and "tree" in the others has the weights 1/2 and 1/2.

    Parameters
    ----------
    flat : ImageLabels
    class_weights : csr_array (n_classes, n_clusters)
        Rows sum to 1, or to 0 where a task class was not clustered and does not count.
    image_ids, classes : int64 (n_samples,)
        Each sample's image and task class.

    Returns
    -------
    csr_array (n_labelled, n_clusters)
        Rows in the order of ``flat.image_ids``, columns numbered like ``flat.labels``; rows sum to 1.
    """
    counted = class_weights.sum(axis=1)[classes] > 0
    rows = np.searchsorted(flat.image_ids, image_ids[counted])
    occurs = csr_array(
        (np.ones(len(rows)), (rows, classes[counted])), shape=(len(flat.image_ids), class_weights.shape[0])
    )
    sums = (occurs @ class_weights)[:, flat.order]
    weights = csr_array(sums.multiply(1 / sums.sum(axis=1)[:, None]))
    weights.sort_indices()
    return weights


def weights_table(image_ids: Ints, weights: csr_array) -> pd.DataFrame:
    """Return a table of image_id, label and weight, one row per weight of `image_weights` above 0."""
    entries = weights.tocoo()
    return pd.DataFrame(
        {"image_id": image_ids[entries.row], "label": entries.col.astype(np.int64), "weight": entries.data}
    )
