"""Which optimizer, learning rate and lambda_1 (Eq. 5) suit the initial embedding: on validation tasks.

``python -m studies.training.embed_rates`` after ``dvc repro`` in benchmark/ has drawn the tasks; goes on where it
stopped, and writes studies/results/embed_rates.csv.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from mela.params import EmbedParams, EvaluateParams
from mela.training.embeddings import train_embedding
from mela.training.loop import Schedule
from studies.cells import logistic_accuracies
from studies.training.trials import Optimizer, Trial, complete, means

RATES: list[tuple[Optimizer, float]] = [("sgd", 0.05), ("adam", 0.003)]


@dataclass(frozen=True, kw_only=True)
class EmbedTrial(Trial):
    """How the initial embedding is trained.

    Attributes
    ----------
    optimizer : {"sgd", "adam"}
    rate : float
    ridge : float
        lambda_1.
    """

    optimizer: Optimizer
    rate: float
    ridge: float

    def measure(self) -> dict[str, float]:
        """Validation accuracies after the training, by the logistic head."""
        settings, tasks = EmbedParams.read(self.params), self.tasks("train")
        backbone = self.backbone(tasks)
        schedule = settings.schedule() | {"learning_rate": self.rate}
        train_embedding(
            backbone,
            self.images,
            tasks,
            self.training("embed", Schedule(**schedule, optimizer=self.optimizer, rate_name="the learning rate")),
            ridge=self.ridge,
            normalize=settings.normalize,
            tasks_per_epoch=settings.tasks_per_epoch,
            tasks_per_step=settings.tasks_per_step,
        )
        head = EvaluateParams.read(self.params)
        return means(logistic_accuracies(backbone, self.images, self.tasks("val"), head))


def main(
    data: Annotated[list[str], typer.Option("--data", help="data sets")] = ["glyphs", "cifar_fs"],  # noqa: B006
    ridge: Annotated[list[float], typer.Option("--ridge", help="lambda_1")] = [0.001, 1, 50],  # noqa: B006
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/embed_rates.csv"),
) -> None:
    """All rates with all lambda_1 on all data sets."""
    complete(
        out,
        [
            EmbedTrial(data=name, optimizer=optimizer, rate=rate, ridge=value)
            for name, (optimizer, rate), value in product(data, RATES, ridge)
        ],
    )


if __name__ == "__main__":
    typer.run(main)
