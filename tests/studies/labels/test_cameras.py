"""Simulated cameras, as the study describes them."""

import numpy as np

from mela.labeling.task_classes import class_means
from studies.labels.cameras import CLASSES, SAMPLES, TASKS, WAYS, simulated


def means_of(gain: float, objects: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of task classes, their true classes and their tasks; without cameras and objects means are centers."""
    samples, truth = simulated(gain, objects, seed=0)
    return class_means(samples).means, truth, np.arange(TASKS).repeat(WAYS)


def test_a_camera_changes_each_feature_of_its_task_by_one_factor() -> None:
    plain, truth, tasks = means_of(0.0, 0.0)
    taken, same, _ = means_of(0.5, 0.0)
    np.testing.assert_array_equal(truth, same)
    assert len(np.unique(truth)) == CLASSES
    assert all(len(set(truth[tasks == task])) == WAYS for task in range(TASKS))
    centers = np.array([plain[truth == one].mean(axis=0) for one in range(CLASSES)])[truth]
    # noise hides what cameras do to small features
    changes = np.ma.masked_array(np.log(np.abs(taken / centers)), mask=centers < 1)
    np.testing.assert_allclose(changes.std(), 0.5, rtol=0.1)
    alike = np.ma.concatenate([changes[tasks == task] - changes[tasks == task].mean(axis=0) for task in range(TASKS)])
    assert alike.std() < 0.15


def test_objects_differ_from_their_class() -> None:
    means, truth, _ = means_of(0.0, 0.3)
    centers = np.array([means[truth == one].mean(axis=0) for one in range(CLASSES)])[truth]
    n = np.bincount(truth)[truth][:, None]
    spread = ((means - centers) ** 2 * n / (n - 1)).mean()
    np.testing.assert_allclose(spread, 0.3**2 + 0.3**2 / SAMPLES, rtol=0.05)
