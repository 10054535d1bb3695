"""Train the two embeddings of MeLa: meta-learned from tasks (Eq. 4-5), and pre-trained on global labels (Eq. 7)."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt
from torch import nn

from mela.data.episodes import Episodes
from mela.errors import MelaError
from mela.learners.base import LabelLearner, Learner
from mela.learners.ridge import RidgeLearner
from mela.learners.task_centered import TaskCentered
from mela.learners.task_heads import TaskHeads
from mela.models.backbones import Backbone
from mela.runtime.seeding import seeded
from mela.training.loop import Epoch, Training
from mela.training.on_images import train_on_labels, trained_targets
from mela.training.on_tasks import train_on_tasks
from mela.training.targets import Targets

BaseLearner = Literal["ridge", "task_heads"]


def train_embedding(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    tasks: Episodes,
    training: Training,
    *,
    ridge: float,
    normalize: bool,
    base_learner: BaseLearner = "ridge",
    hinge: float = 0.0,
    consistency: float = 0.0,
    tasks_per_epoch: int | None,
    tasks_per_step: int = 1,
) -> list[Epoch]:
    """Train `backbone` in place and return its curve.

    Parameters
    ----------
    backbone : Backbone
    images : uint8 (N, h, w, c)
    tasks : Episodes
    training : Training
    ridge, normalize
        See `mela.learners.ridge.ridge`.
    base_learner : {"ridge", "task_heads"}
        What learns a task: ridge regression on its support set, or logistic regression on all of its images
        (`mela.learners.task_heads.TaskHeads`).
    hinge, consistency
        See `mela.learners.ridge.ridge_query_losses`; for ridge regression alone.
    tasks_per_epoch, tasks_per_step
        See `mela.training.on_tasks.train_on_tasks`, which also says what is raised.
    """
    kinds: dict[BaseLearner, Callable[[], Learner]] = {
        "ridge": lambda: RidgeLearner(backbone, ridge, normalize=normalize, hinge=hinge, consistency=consistency),
        "task_heads": lambda: TaskHeads(backbone),
    }
    learner = kinds[base_learner]()
    return train_on_tasks(
        learner, images, tasks, training, tasks_per_epoch=tasks_per_epoch, tasks_per_step=tasks_per_step
    )


def pretrain(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    targets: Targets,
    training: Training,
    *,
    batch_size: int,
    label_smoothing: float = 0.0,
) -> tuple[nn.Linear, list[Epoch]]:
    """Train `backbone` in place with a linear classifier on top, and return the classifier and the curve.

    The loss is the cross-entropy to the label of an image or, if it has shares of several, to these shares, which is
    the mean of the losses of its labels weighted by them.

    Parameters
    ----------
    backbone : Backbone
    images : uint8 (N, h, w, c)
    targets : Targets
        The flat data set. If it has tasks, features are learned less the means of these.
    training : Training
        Its seed is that of the classifier's weights too.
    batch_size : int
    label_smoothing : float, default=0
        See `mela.learners.base.LabelLearner`.
    """
    if targets.n_labels < 2:
        raise MelaError(
            f"pretrain: training needs 2 global labels or more, but the images have {targets.n_labels}; rerun the "
            "stage that infers them, or add tasks"
        )
    learned = trained_targets(targets, training)
    with seeded(training.seed):
        kind = LabelLearner if targets.tasks is None else TaskCentered
        learner = kind(backbone, learned.n_labels).to(next(backbone.parameters()))
    learner.label_smoothing = label_smoothing
    curve = train_on_labels(learner, images, learned, training, batch_size=batch_size)
    return _upright(learner.classifier, targets.n_labels), curve


def _upright(classifier: nn.Linear, n_labels: int) -> nn.Linear:
    """Return the part of a classifier that knows images as they are, which comes first."""
    if classifier.out_features == n_labels:
        return classifier
    part = nn.utils.skip_init(nn.Linear, classifier.in_features, n_labels, device=classifier.weight.device)
    part.load_state_dict({name: value[:n_labels] for name, value in classifier.state_dict().items()})
    return part
