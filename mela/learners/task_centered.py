"""Classify images by what they do not share with the other images of their task."""

from typing import Any

import torch
from torch import Tensor

from mela.learners.base import LabelLearner


class TaskCentered(LabelLearner):
    """Learn labels by features less the mean of their task in the batch.

    What is the same in all images of a task, as what a person's camera adds, then tells nothing of their labels.
    """

    def forward(self, images: Tensor, tasks: Tensor | None = None) -> Any:
        """Return the logits (b, n_labels) of images (b, c, h, w), float in [0, 1].

        Without the tasks (b,) of the images, features are classified as they are.
        """
        features = self.backbone(images)
        return self.classifier(features if tasks is None else less_task_means(features, tasks))


def less_task_means(features: Tensor, tasks: Tensor) -> Tensor:
    """Return the features (b, m) less the means of their tasks, which are any numbers (b,) of int64."""
    # a product has the same bits in every run, which a GPU's sums by index have not, and bfloat16 would round it
    with torch.autocast(features.device.type, enabled=False):
        exact = features.to(torch.promote_types(features.dtype, torch.float32))
        alike = (tasks[:, None] == tasks).to(exact)
        return exact - alike / alike.sum(1, keepdim=True) @ exact
