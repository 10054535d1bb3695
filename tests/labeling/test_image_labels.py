"""Labels of images, against cases computed by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from mela.labeling.image_labels import image_weights, label_images, weights_table


def labels_of(samples: list[tuple[int, int]], labels: list[int]) -> dict[int, int]:
    """Labels of images from (image, task class) samples."""
    image_ids, classes = np.array(samples).T
    found = label_images(np.array(labels), max(labels) + 1, image_ids, classes)
    assert found.image_ids.tolist() == sorted(found.image_ids.tolist())
    assert (found.image_ids.dtype, found.labels.dtype) == (np.int64, np.int64)
    return dict(zip(found.image_ids.tolist(), found.labels.tolist(), strict=True))


def test_an_image_takes_the_cluster_of_most_of_its_classes() -> None:
    samples = [(8, 0), (8, 1), (8, 2), (3, 0), (5, 2)]
    assert labels_of(samples, [4, 1, 4]) == {3: 0, 5: 0, 8: 0}
    assert labels_of(samples, [1, 4, 4]) == {3: 0, 5: 1, 8: 1}


@pytest.mark.parametrize("labels", [[6, 2], [2, 6]])
def test_a_tie_goes_to_the_smallest_cluster(labels: list[int]) -> None:
    samples = [(0, 0), (0, 1), (1, 0), (2, 1)]
    found = labels_of(samples, labels)
    assert found[0] == 0
    assert found[1 + labels.index(2)] == 0
    assert found[1 + labels.index(6)] == 1


def test_tasks_that_were_not_clustered_do_not_vote() -> None:
    samples = [(0, 0), (0, 1), (0, 2), (1, 1)]
    assert labels_of(samples, [5, -1, -1]) == {0: 0}


def test_labels_are_compact_in_the_order_of_the_clusters() -> None:
    samples = [(10, 0), (11, 1), (12, 2), (13, 3)]
    assert labels_of(samples, [9, 4, 9, 70]) == {10: 1, 11: 0, 12: 1, 13: 2}


def test_label_v_is_cluster_order_v_and_unused_clusters_come_last() -> None:
    found = label_images(np.array([5, 3, 1, -1]), 6, np.array([0, 0, 0, 1, 2]), np.array([0, 0, 2, 1, 0]))
    assert found.labels.tolist() == [1, 0, 1]
    assert found.order.tolist() == [3, 5, 0, 1, 2, 4]
    assert found.renumber(np.array([5, 3, 1])).tolist() == [1, 0, 3]


def test_weights_of_an_image_are_the_mean_over_its_task_classes() -> None:
    """Cluster 2 labels image 3 and so is label 0; cluster 0 labels image 8 and is 1; cluster 1 labels none."""
    weights = csr_array(np.array([[0.0, 0.1, 0.9], [0.8, 0.2, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    image_ids, classes = np.array([8, 3, 8, 3, 8, 6]), np.array([0, 0, 1, 2, 3, 2])
    flat = label_images(np.array([2, 0, -1, 0]), 3, image_ids, classes)
    assert (flat.image_ids.tolist(), flat.labels.tolist(), flat.order.tolist()) == ([3, 8], [1, 0], [0, 2, 1])
    found = image_weights(flat, weights, image_ids, classes)
    np.testing.assert_allclose(found.toarray(), [[0, 0.9, 0.1], [0.6, 0.3, 0.1]], rtol=1e-12)
    table = weights_table(flat.image_ids, found)
    assert table.dtypes.to_dict() == {"image_id": np.int64, "label": np.int64, "weight": np.float64}
    assert table["image_id"].tolist() == [3, 3, 8, 8, 8]
    assert table["label"].tolist() == [1, 2, 0, 1, 2]


@given(seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=30)
def test_of_certain_weights_the_largest_is_the_label(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_classes, n_clusters = 30, 6
    labels = rng.integers(-1, n_clusters, size=n_classes)
    image_ids, classes = rng.integers(20, size=200), rng.integers(n_classes, size=200)
    known = np.flatnonzero(labels >= 0)
    certain = csr_array((np.ones(len(known)), (known, labels[known])), shape=(n_classes, n_clusters))
    flat = label_images(labels, n_clusters, image_ids, classes)
    found = image_weights(flat, certain, image_ids, classes).toarray()
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    own = found[np.arange(len(flat.labels)), flat.labels]
    np.testing.assert_allclose(own, found.max(axis=1), rtol=1e-12)
