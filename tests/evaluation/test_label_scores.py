"""Scores of labels against the truth."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from mela.evaluation.label_scores import majority_accuracy, partition_scores, score_images, score_labels, score_tasks

pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=60)


def test_majority_accuracy_by_hand() -> None:
    clusters = np.array([0, 0, 0, 1, 1, 3])
    truth = np.array([2, 2, 0, 0, 1, 1])
    assert majority_accuracy(clusters, truth) == pytest.approx((2 + 1 + 1) / 6)


@given(samples=pairs)
@settings(deadline=None, max_examples=50)
def test_partition_scores_are_those_of_scikit_learn(samples: list[tuple[int, int]]) -> None:
    labels, truth = np.array(samples).T
    found = partition_scores(labels, truth)
    table = metrics.cluster.contingency_matrix(truth, labels)
    assert found["purity"] == pytest.approx(100 * table.max(axis=0).sum() / len(samples))
    assert found["ari"] == pytest.approx(metrics.adjusted_rand_score(truth, labels))
    assert found["nmi"] == pytest.approx(metrics.normalized_mutual_info_score(truth, labels))


TRUTH = pd.DataFrame({"image_id": [0, 1, 2, 3, 4, 5], "class": ["a", "a", "a", "b", "b", "c"]})
MANIFEST = pd.DataFrame(
    {
        "task_id": [0, 0, 0, 1, 1, 2, 2, 2],
        "image_id": [0, 1, 3, 0, 4, 2, 5, 4],
        "local_label": [0, 0, 1, 0, 1, 1, 0, 0],
        "role": "support",
    }
)
ASSIGNMENTS = pd.DataFrame(
    {
        "task_id": [0, 0, 1, 1, 2, 2],
        "local_label": [0, 1, 0, 1, 0, 1],
        "cluster": [7, 2, 2, 7, 7, 7],
        "clustered": [True, True, True, True, False, False],
    }
)


def test_tasks_by_hand() -> None:
    """Clustered samples: 7 has a, a, b and 2 has b, a (3 of 5 right); with task 2, 7 also has c, b, a (4 of 8)."""
    expected = {"tasks_clustered": 200 / 3, "accuracy": 60, "accuracy_all_tasks": 50}
    assert score_tasks(ASSIGNMENTS, MANIFEST, TRUTH) == pytest.approx(expected)


def test_majorities_are_those_of_the_samples_counted() -> None:
    """All of cluster 7's clustered samples are b; the larger number of a's came from the task left out."""
    assignments = ASSIGNMENTS.assign(clustered=[False, False, True, True, False, False])
    assert score_tasks(assignments, MANIFEST, TRUTH)["accuracy"] == 100


def test_rows_may_come_in_any_order() -> None:
    shuffled = [table.sample(frac=1, random_state=1) for table in (ASSIGNMENTS, MANIFEST, TRUTH)]
    assert score_tasks(*shuffled) == score_tasks(ASSIGNMENTS, MANIFEST, TRUTH)


def test_images_by_hand() -> None:
    labels = pd.DataFrame({"image_id": [5, 0, 1, 3, 4], "label": [1, 0, 0, 0, 1]})
    found = score_images(labels, TRUTH)
    true = ["c", "a", "a", "b", "b"]
    assert found["purity"] == pytest.approx(60)
    assert found["ari"] == pytest.approx(metrics.adjusted_rand_score(true, labels["label"]))
    assert found["nmi"] == pytest.approx(metrics.normalized_mutual_info_score(true, labels["label"]))


LABELS = pd.DataFrame({"image_id": [5, 0, 1, 3, 4], "label": [1, 0, 0, 0, 1]})


def test_labels_of_tasks_have_what_is_known_of_tasks_and_of_images() -> None:
    found = score_labels(LABELS, ASSIGNMENTS, MANIFEST, TRUTH)
    by_task, by_image = score_tasks(ASSIGNMENTS, MANIFEST, TRUTH), score_images(LABELS, TRUTH)
    assert found == {"clusters": 2, "true_classes": 3} | by_task | by_image
    assert found.keys() >= {"tasks_clustered", "accuracy", "accuracy_all_tasks", "purity", "ari", "nmi"}


def test_labels_that_ignore_tasks_have_no_accuracy() -> None:
    found = score_labels(LABELS, None, MANIFEST, TRUTH)
    assert found == {"clusters": 2, "true_classes": 3} | score_images(LABELS, TRUTH)


def test_without_truth_the_number_of_clusters_is_known_alone() -> None:
    for assignments in (ASSIGNMENTS, None):
        assert score_labels(LABELS, assignments, MANIFEST, TRUTH.head(0)) == {"clusters": 2}


def test_only_classes_of_training_tasks_count() -> None:
    """The truth is about all images, and test classes have nothing to be found in."""
    others = pd.DataFrame({"image_id": [90, 91], "class": ["x", "y"]})
    found = score_labels(LABELS, ASSIGNMENTS, MANIFEST, pd.concat([TRUTH, others], ignore_index=True))
    assert found == score_labels(LABELS, ASSIGNMENTS, MANIFEST, TRUTH)
