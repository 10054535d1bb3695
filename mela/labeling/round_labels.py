"""Labels for a round of training before merging.

Where people differ, the initial embedding tells their looks apart rather than the classes. An embedding that has
learned to tell all task classes apart does so less, and one that has learned merged labels less again. So each round
makes the next labels better.

Pairs of classes inside tasks judge the labels of the next round. An embedding that has learned to tell just these pairs
apart would make every label look better than it is. So where people differ, rounds learn clusters that may hold wrong
pairs inside tasks, as they may between tasks. They join less than the best labels (`mela.MergeLabeler.round_labels`).
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from mela.data.array_types import Ints
from mela.labeling.diagnostics import label_metrics
from mela.labeling.image_labels import ImageLabels, label_images
from mela.labeling.task_classes import TaskSamples

if TYPE_CHECKING:
    from mela.labeling.merge_labeler import MergeLabeler


def labels_so_far(
    samples: TaskSamples, image_ids: Ints, labeler: "MergeLabeler | None"
) -> tuple[ImageLabels, dict[str, Any]]:
    """Return a label for each image, and what is known without truth.

    The number of clusters is that of these labels. `match` and the expected Rand index are those of the best labels.

    Parameters
    ----------
    samples : TaskSamples
        Of the training tasks, by the features of the round before.
    image_ids : int64 (n_rows,)
        Images of the feature rows.
    labeler : MergeLabeler or None
        Is fitted. Without it, each task class is a label of its own.
    """
    if labeler is None:
        labels = np.arange(len(samples.task_ids))
        told: dict[str, Any] = {}
    else:
        labels = labeler.fit_tasks(samples).round_labels
        told = {"match": labeler.pair_quality_.match} | label_metrics(labeler)
    told["clusters"] = len(np.unique(labels[labels >= 0]))
    return label_images(labels, int(labels.max()) + 1, image_ids[samples.index], samples.classes), told
