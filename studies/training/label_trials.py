"""What trials on labels have in common: a method is trained on those of a seed, as the benchmark trains it."""

from collections.abc import Sequence
from dataclasses import dataclass

from mela.learners.base import LabelLearner, Student
from mela.methods import find_method
from mela.params import EvaluateParams, PretrainParams
from mela.runtime.device import choose_device
from mela.runtime.seeding import seeded
from mela.training.loop import Epoch, Schedule
from mela.training.on_images import train_on_labels
from mela.training.targets import read_targets
from studies.cells import logistic_accuracies
from studies.training.trials import SEED, Trial, means

START_SEED = 0


@dataclass(frozen=True, kw_only=True)
class LabelTrial(Trial):
    """A trial on labels.

    Attributes
    ----------
    labels : str
        Those of seed `START_SEED`.
    """

    labels: str

    @property
    def settings(self) -> PretrainParams:
        """Of the benchmark's trainings on labels."""
        return PretrainParams.read(self.params)

    def trained(
        self, method: str, settings: PretrainParams, *, seed: int = SEED, teacher: LabelLearner | None = None
    ) -> tuple[LabelLearner, Sequence[Epoch]]:
        """A learner and the curve of its training, with all chance from a seed."""
        labels = self.folder / f"seed{START_SEED}" / "labels" / f"{self.labels}.parquet"
        targets = read_targets(labels, soft=False)
        backbone = self.backbone(self.tasks("train"), seed)
        with seeded(seed):
            learner: LabelLearner = find_method(method).build(backbone, targets.n_labels)
        learner.to(choose_device("auto"))
        if isinstance(learner, Student) and teacher is not None:
            learner.learn_from(teacher)
        schedule = Schedule(**settings.schedule(), rate_name="the learning rate")
        training = self.training("pretrain", schedule, seed)
        curve = train_on_labels(learner, self.images, targets, training, batch_size=settings.batch_size)
        return learner, curve

    def accuracies(self, learner: LabelLearner) -> dict[str, float]:
        """Validation accuracies by the logistic head."""
        head = EvaluateParams.read(self.params)
        return means(logistic_accuracies(learner.backbone, self.images, self.tasks("val"), head))
