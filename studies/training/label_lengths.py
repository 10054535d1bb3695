"""What longer training gives methods that learn from labels, MeLa's or true ones: on validation tasks.

``python -m studies.training.label_lengths`` once the labels are there (``dvc --cd benchmark repro
label_merged@glyphs-0``, say); goes on where it stopped, and writes studies/results/label_lengths.csv. The budget of the
benchmark is one length for all; this tells what it decides.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from studies.cells import lengthened
from studies.training.label_trials import LabelTrial
from studies.training.trials import complete


@dataclass(frozen=True, kw_only=True)
class LengthTrial(LabelTrial):
    """A method on labels, and how long it is trained.

    Attributes
    ----------
    method : str
    longer : float
        Share of the schedule's epochs.
    """

    method: str
    longer: float

    def measure(self) -> dict[str, float]:
        """Validation accuracies by the logistic head, and the share of training images that are right in the end."""
        settings = self.settings
        if self.longer != 1:
            settings = lengthened(settings, max(1, round(settings.epochs * self.longer)))
        learner, curve = self.trained(self.method, settings)
        return self.accuracies(learner) | {"training": curve[-1].accuracy}


def main(
    data: Annotated[list[str], typer.Option("--data", help="data sets")] = ["glyphs", "cifar_fs"],  # noqa: B006
    labels: Annotated[list[str], typer.Option("--labels", help="merged | kmeans | oracle")] = ["merged"],  # noqa: B006
    methods: Annotated[list[str], typer.Option("--methods", help="that learn from labels")] = [  # noqa: B006
        "rfs",
        "rotation",
        "mixup",
        "s2m2",
    ],
    longer: Annotated[list[float], typer.Option("--longer", help="shares of the schedule's epochs")] = [1, 4],  # noqa: B006
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/label_lengths.csv"),
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
