"""What longer training gives methods that learn from labels, MeLa's or true ones: on validation tasks.

``python -m bench.label_lengths`` once the labels are there (``dvc --cd benchmark repro label_mela@glyphs-0``, say);
goes on where it stopped, and writes results/label_lengths.csv. The budget of the benchmark is one length for all; this
tells what it decides.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from bench.cells import lengthened, logistic_accuracies
from bench.trials import SEED, Trial, complete, means
from mela.device import choose_device
from mela.label_learner import LabelLearner
from mela.label_training import train_on_labels
from mela.method import find_method
from mela.params import EvaluateParams, PretrainParams
from mela.seeding import seeded
from mela.targets import read_targets
from mela.training import Schedule

START_SEED = 0


@dataclass(frozen=True, kw_only=True)
class LengthTrial(Trial):
    """A method on labels, and how long it is trained.

    Attributes
    ----------
    labels : str
        Those of seed `START_SEED`.
    method : str
    longer : float
        Share of the schedule's epochs.
    """

    labels: str
    method: str
    longer: float

    def measure(self) -> dict[str, float]:
        """Validation accuracies by the logistic head, and the share of training images that are right in the end."""
        settings, tasks = PretrainParams.read(self.params), self.tasks("train")
        if self.longer != 1:
            settings = lengthened(settings, max(1, round(settings.epochs * self.longer)))
        labels = self.folder / f"seed{START_SEED}" / "labels" / f"{self.labels}.parquet"
        targets = read_targets(labels, soft=False)
        backbone = self.backbone(tasks)
        with seeded(SEED):
            learner: LabelLearner = find_method(self.method).build(backbone, targets.n_labels)
        learner.to(choose_device("auto"))
        schedule = Schedule(**settings.schedule(), rate_name="the learning rate")
        curve = train_on_labels(
            learner, self.images, targets, self.training("pretrain", schedule), batch_size=settings.batch_size
        )
        head = EvaluateParams.read(self.params)
        found = means(logistic_accuracies(learner.backbone, self.images, self.tasks("val"), head))
        return found | {"training": curve[-1].accuracy}


def main(
    data: Annotated[list[str], typer.Option("--data", help="data sets")] = ["glyphs", "cifar_fs"],  # noqa: B006
    labels: Annotated[list[str], typer.Option("--labels", help="mela | kmeans | oracle")] = ["mela"],  # noqa: B006
    methods: Annotated[list[str], typer.Option("--methods", help="that learn from labels")] = [  # noqa: B006
        "rfs",
        "rotation",
        "mixup",
        "s2m2",
    ],
    longer: Annotated[list[float], typer.Option("--longer", help="shares of the schedule's epochs")] = [1, 4],  # noqa: B006
    out: Annotated[Path, typer.Option(help="the table")] = Path("results/label_lengths.csv"),
) -> None:
    """All lengths of all methods on all labels and data sets."""
    complete(
        out,
        [
            LengthTrial(data=name, labels=own, method=method, longer=share)
            for name, own, share, method in product(data, labels, longer, methods)
        ],
    )


if __name__ == "__main__":
    typer.run(main)
