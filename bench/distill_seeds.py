"""What it makes that a student starts from the weights that its teacher started from: on validation tasks.

``python -m bench.distill_seeds`` once the labels are there (``dvc --cd benchmark repro label_mela@glyphs-0``, say);
goes on where it stopped, and writes results/distill_seeds.csv. In the benchmark a generation has its teacher's seed,
so that it starts from the same weights and sees the same batches; here one with a seed of its own stands beside it.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import typer

from bench.cells import logistic_accuracies
from bench.trials import SEED, Trial, complete, means
from mela.backbones import build_backbone
from mela.device import choose_device
from mela.label_learner import LabelLearner, Student
from mela.label_training import train_on_labels
from mela.method import find_method
from mela.models import configure
from mela.params import EvaluateParams, ModelParams, PretrainParams
from mela.seeding import seeded
from mela.targets import read_targets
from mela.training import Schedule

LABELS_SEED = 0
Own = Literal["teacher", "same", "other"]
STUDENTS: list[Own] = ["teacher", "same", "other"]


@dataclass(frozen=True, kw_only=True)
class SeedTrial(Trial):
    """A teacher, or a student of it.

    Attributes
    ----------
    labels : str
        Those of seed `LABELS_SEED`.
    seed : int
        Of the teacher, counted from a seed that no table has.
    student : {"teacher", "same", "other"}
        The teacher itself, a student with its seed, or one with another.
    """

    labels: str
    seed: int
    student: Own

    def measure(self) -> dict[str, float]:
        """Validation accuracies by the logistic head."""
        learner = _teacher(self.data, self.labels, self.seed)
        if self.student != "teacher":
            shift = 0 if self.student == "same" else 1000
            learner = self.trained("distill", SEED + self.seed + shift, learner)
        head = EvaluateParams.read(self.params)
        return means(logistic_accuracies(learner.backbone, self.images, self.tasks("val"), head))

    def trained(self, method: str, seed: int, teacher: LabelLearner | None) -> LabelLearner:
        """By a method on the labels, with all chance from a seed."""
        settings = PretrainParams.read(self.params)
        targets = read_targets(self.folder / f"seed{LABELS_SEED}" / "labels" / f"{self.labels}.parquet", soft=False)
        configuration = configure(ModelParams.read(self.params), self.images, targets.image_ids)
        with seeded(seed):
            learner: LabelLearner = find_method(method).build(
                build_backbone(**configuration, seed=seed), targets.n_labels
            )
        learner.to(choose_device("auto"))
        if isinstance(learner, Student) and teacher is not None:
            learner.learn_from(teacher)
        schedule = Schedule(**settings.schedule(), rate_name="the learning rate")
        training = self.training("pretrain", schedule, seed)
        train_on_labels(learner, self.images, targets, training, batch_size=settings.batch_size)
        return learner


@cache
def _teacher(data: str, labels: str, seed: int) -> LabelLearner:
    """Trained once for all that learn from it."""
    return SeedTrial(data=data, labels=labels, seed=seed, student="teacher").trained("rfs", SEED + seed, None)


def main(
    data: Annotated[list[str], typer.Option("--data", help="data sets")] = ["glyphs"],  # noqa: B006
    labels: Annotated[str, typer.Option(help="mela | kmeans | oracle")] = "mela",
    seeds: Annotated[int, typer.Option(help="teachers, each with a student of either kind")] = 5,
    out: Annotated[Path, typer.Option(help="the table")] = Path("results/distill_seeds.csv"),
) -> None:
    """All teachers and students on all data sets."""
    complete(
        out,
        [
            SeedTrial(data=name, labels=labels, seed=seed, student=student)
            for name, seed, student in product(data, range(seeds), STUDENTS)
        ],
    )


if __name__ == "__main__":
    typer.run(main)
