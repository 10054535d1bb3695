"""What it makes that a student starts from the weights that its teacher started from: on validation tasks.

``python -m studies.training.distill_seeds`` once the labels are there (``dvc --cd benchmark repro
label_merged@glyphs-0``, say); goes on where it stopped, and writes studies/results/distill_seeds.csv. In the benchmark
a generation has its teacher's seed, so that it starts from the same weights and sees the same batches; here one with a
seed of its own stands beside it.
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import typer

from mela.learners.base import LabelLearner
from studies.training.label_trials import LabelTrial
from studies.training.trials import SEED, complete

Own = Literal["teacher", "same", "other"]
STUDENTS: list[Own] = ["teacher", "same", "other"]


@dataclass(frozen=True, kw_only=True)
class SeedTrial(LabelTrial):
    """A teacher, or a student of it.

    Attributes
    ----------
    seed : int
        Of the teacher, counted from a seed that no table has.
    student : {"teacher", "same", "other"}
        The teacher itself, a student with its seed, or one with another.
    """

    seed: int
    student: Own

    def measure(self) -> dict[str, float]:
        """Validation accuracies by the logistic head."""
        learner = _teacher(self.data, self.labels, self.seed)
        if self.student != "teacher":
            seed = SEED + self.seed + (0 if self.student == "same" else 1000)
            learner, _ = self.trained("distill", self.settings, seed=seed, teacher=learner)
        return self.accuracies(learner)


@cache
def _teacher(data: str, labels: str, seed: int) -> LabelLearner:
    """Trained once for all that learn from it."""
    trial = SeedTrial(data=data, labels=labels, seed=seed, student="teacher")
    return trial.trained("rfs", trial.settings, seed=SEED + seed)[0]


def main(
    data: Annotated[list[str], typer.Option("--data", help="data sets")] = ["glyphs"],  # noqa: B006
    labels: Annotated[str, typer.Option(help="merged | kmeans | oracle")] = "merged",
    seeds: Annotated[int, typer.Option(help="teachers, each with a student of either kind")] = 5,
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/distill_seeds.csv"),
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
