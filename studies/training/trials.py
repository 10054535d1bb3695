"""Compare trainings on validation tasks: the initial embedding, and methods on labels.

One seed, which no other table has. No test task is read.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import pandas as pd

from benchmark import places
from mela.data.episodes import Episodes
from mela.io.checked_tables import read_manifest
from mela.learners.base import LabelLearner, Student
from mela.methods import find_method
from mela.models.backbones import Backbone
from mela.params import EmbedParams, ModelParams, PretrainParams
from mela.runtime.compute import Compute
from mela.runtime.device import choose_device, choose_dtype
from mela.runtime.seeding import seeded
from mela.training.loop import Epoch
from mela.training.on_images import train_on_labels, trained_targets
from mela.training.schedule import Schedule
from mela.training.targets import read_targets
from studies.lab import Lab, trained_longer

SEED = 100
# of labels, and of embeddings to start from
START_SEED = 0


class Trial(Lab):
    """Hold a data set of the benchmark, whose tasks are drawn."""

    @classmethod
    def of(cls, data: str, seed: int = SEED) -> "Trial":
        """Return the trial of a data set, in the number format that the benchmark trains in."""
        params = places.preset(data)
        dtype = choose_dtype(ModelParams.read(params).precision, choose_device("auto"))
        return cls(params=params, folder=places.shared(data), seed=seed, compute=Compute(dtype=dtype))

    def tasks(self, split: str) -> Episodes:
        """Return tasks to train on, or to choose by."""
        return Episodes(read_manifest(self.folder / f"{split}.parquet"))

    def untrained(self) -> Backbone:
        """Return an untrained embedding for the images of the training tasks."""
        return self.backbone(self.tasks("train").image_ids())

    def validated(self, backbone: Backbone) -> dict[str, float]:
        """Return validation accuracies by the logistic head."""
        return means(self.accuracies(backbone, self.tasks("val")))

    def learned(
        self, method: str, labels: str, settings: PretrainParams, teacher: LabelLearner | None = None
    ) -> tuple[LabelLearner, Sequence[Epoch]]:
        """Return a method trained on labels, as the benchmark trains it, and the curve of its training."""
        file = self.folder / f"seed{START_SEED}" / "labels" / f"{labels}.parquet"
        targets, backbone = read_targets(file, soft=False), self.untrained()
        schedule = Schedule(**settings.schedule(), rate_name="the learning rate")
        training = self.training("pretrain", schedule, rotated_classes=settings.rotated_classes)
        targets = trained_targets(targets, training)
        with seeded(self.seed):
            learner: LabelLearner = find_method(method).build(backbone, targets.n_labels)
        learner.label_smoothing = settings.label_smoothing
        learner.to(choose_device("auto"))
        if isinstance(learner, Student) and teacher is not None:
            learner.learn_from(teacher)
        curve = train_on_labels(learner, self.images, targets, training, batch_size=settings.batch_size)
        return learner, curve


def means(accuracies: pd.DataFrame) -> dict[str, float]:
    """Return the mean of column accuracy by column setting."""
    return {str(setting): mean for setting, mean in accuracies.groupby("setting")["accuracy"].mean().items()}


def with_own_ridge(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of the grid without lambda_1 unless its base learner has one."""
    return cell if cell["base_learner"] == "ridge" else cell | {"ridge": "-"}


def embedding(
    *, data: str, base_learner: str, optimizer: str, rate: float, ridge: float | Literal["-"]
) -> dict[str, float]:
    """Return accuracies of an initial embedding trained with a base learner, an optimizer, its rate and lambda_1."""
    trial = Trial.of(data)
    how = {"learning_rate": rate, "optimizer": optimizer, "rate_name": "the learning rate"}
    settings = trial.block(EmbedParams, base_learner=base_learner, **({} if ridge == "-" else {"ridge": ridge}))
    return trial.validated(trial.embed(trial.untrained(), trial.tasks("train"), settings, **how))


def length(*, data: str, labels: str, method: str, longer: float) -> dict[str, float]:
    """Return accuracies after so many times the epochs, and the share of training images that are right at the end."""
    trial = Trial.of(data)
    learner, curve = trial.learned(method, labels, trained_longer(trial.block(PretrainParams), longer))
    return trial.validated(learner.backbone) | {"training": curve[-1].accuracy}


def student(*, data: str, labels: str, seed: int, student: str, settings: dict[str, Any]) -> dict[str, float]:
    """Return accuracies of a teacher, of a student with its seed, or of one with another, `shift` further."""
    learner = _teacher(data, labels, seed)
    if student != "teacher":
        trial = Trial.of(data, SEED + seed + settings["shift"])
        learner, _ = trial.learned("distill", labels, trial.block(PretrainParams), teacher=learner)
    return Trial.of(data).validated(learner.backbone)


@cache
def _teacher(data: str, labels: str, seed: int) -> LabelLearner:
    """Train a teacher once for all that learn from it."""
    trial = Trial.of(data, SEED + seed)
    return trial.learned("rfs", labels, trial.block(PretrainParams))[0]
