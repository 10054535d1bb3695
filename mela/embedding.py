"""Meta-learning the initial embedding from locally labelled tasks (Eq. 4-5)."""

import numpy as np
import numpy.typing as npt
from torch import Tensor

from mela.backbones import Backbone
from mela.episodes import Episodes
from mela.learner import Learner
from mela.meta_training import train_on_tasks
from mela.ridge import ridge_outputs, ridge_query_losses
from mela.training import Epoch, Training


class RidgeLearner(Learner):
    """Ridge regression on the support set, squared error on the query set.

    Parameters
    ----------
    backbone : Backbone
    ridge, normalize
        See `mela.ridge.ridge`.
    """

    regularizer: float
    remedy = "raise embed.ridge"

    def __init__(self, backbone: Backbone, ridge: float, *, normalize: bool) -> None:
        super().__init__(backbone)
        self.regularizer, self.normalize = ridge, normalize

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """What ridge regression predicts of one-hot labels."""
        return ridge_outputs(support, labels, query, ways, self.regularizer, normalize=self.normalize)

    def losses(self, features: Tensor, labels: Tensor, n_support: int, ways: int) -> tuple[Tensor, Tensor]:
        """See `mela.ridge.ridge_query_losses`."""
        return ridge_query_losses(features, labels, ways, n_support, self.regularizer, normalize=self.normalize)


def train_embedding(
    backbone: Backbone,
    images: npt.NDArray[np.uint8],
    tasks: Episodes,
    training: Training,
    *,
    ridge: float,
    normalize: bool,
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
        See `mela.ridge.ridge`.
    tasks_per_epoch, tasks_per_step
        See `mela.meta_training.train_on_tasks`, which also says what is raised.
    """
    learner = RidgeLearner(backbone, ridge, normalize=normalize)
    return train_on_tasks(
        learner, images, tasks, training, tasks_per_epoch=tasks_per_epoch, tasks_per_step=tasks_per_step
    )
