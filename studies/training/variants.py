"""Define methods with one thing changed, and those that no table of systems has, and their measure."""

from collections.abc import Callable
from functools import partial

from torch import Tensor

from benchmark.stages.method_training import own_schedule
from mela.evaluation.rules import own_rule
from mela.learners.base import Learner
from mela.learners.task_heads import TaskHeads
from mela.methods.anil import ANIL
from mela.methods.metaoptnet_svm import MetaOptNetSVM
from mela.models.backbones import Backbone
from mela.params import EvaluateParams, MethodsParams
from mela.runtime.device import choose_device
from mela.runtime.seeding import seeded
from studies.training.trials import SEED, Trial, means


def svm_with_ridge(backbone: Backbone, ridge: float) -> MetaOptNetSVM:
    """Return MetaOptNet's machine with another ridge on the diagonal of its Gram matrix than the authors' 1.

    Parameters
    ----------
    backbone : Backbone
    ridge : float
        0 for the machine as the paper's equations have it, which can tell any support set apart and leaves the
        embedding little to learn.
    """
    learner = MetaOptNetSVM(backbone)
    learner.ridge = ridge
    return learner


class JointANIL(ANIL):
    """Run ANIL with BatchNorm statistics of support set and queries together, in training and in testing.

    So queries tell of each other, as with MAML's authors.
    """

    def _features(self, weights: dict[str, Tensor], images: Tensor, n_support: int) -> Tensor:
        del n_support
        return super()._features(weights, images, len(images))


VARIANTS: dict[str, Callable[[Backbone], Learner]] = {
    "metaoptnet_svm": MetaOptNetSVM,
    "metaoptnet_svm without a ridge": partial(svm_with_ridge, ridge=0),
    "metaoptnet_svm with a ridge of 50": partial(svm_with_ridge, ridge=50),
    "anil": ANIL,
    "anil with joint statistics": JointANIL,
    "a head per task": TaskHeads,
}


def measure(*, data: str, variant: str) -> dict[str, float]:
    """Return validation accuracies by the own rule of a method, or of a variant, as the benchmark trains it."""
    trial = Trial.of(data)
    tasks, settings = trial.tasks("train"), trial.block(MethodsParams)
    with seeded(SEED):
        learner = VARIANTS[variant](trial.untrained()).to(choose_device("auto"))
    trial.learn(learner, tasks, settings, own_schedule(settings, learner))
    return means(own_rule(learner, trial.images, trial.tasks("val"), trial.block(EvaluateParams).shots))
