"""Which learning rate, logit scale and regularizer suit a method, and what longer training gives, by validation tasks.

``python -m bench.method_rates`` after ``dvc repro`` in benchmark/ has drawn the tasks, and trained what ``--start``
names; goes on where it stopped, and writes results/method_rates.csv. The rates and scales that methods have in
`mela.methods` were chosen by this table; the regularizers are those of their authors.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from torch import nn

from bench.cells import lengthened
from bench.trials import SEED, Optimizer, Trial, complete, means
from benchmark import places
from mela.device import choose_device
from mela.learned import load_learned
from mela.learner import Learner
from mela.meta_test import own_rule
from mela.meta_training import train_on_tasks
from mela.method import find_method, method_names
from mela.params import EvaluateParams, MethodsParams, TuningParams
from mela.seeding import seeded
from mela.training import Schedule

START_SEED = 0
NOTHING = "nothing"
RATES: list[tuple[Optimizer, float]] = [
    ("sgd", 0.1),
    ("adam", 0.003),
    ("sgd", 0.05),
    ("sgd", 0.02),
    ("adam", 0.001),
    ("sgd", 0.005),
]


@dataclass(frozen=True, kw_only=True)
class MethodTrial(Trial):
    """A method, and how it is trained.

    Attributes
    ----------
    method : str
    start : str
        System whose embedding it goes on from, of seed `START_SEED`; or `NOTHING`.
    longer : float
        Share of the schedule's epochs.
    optimizer : {"sgd", "adam"}
    rate : float
    scale : str
        Of the logits, at the start; or `NOTHING` where the method does not learn it.
    regularizer : str
        Of the head; or `NOTHING` where it has none, or learns it.
    """

    method: str
    start: str
    longer: float
    optimizer: Optimizer
    rate: float
    scale: str
    regularizer: str

    def measure(self) -> dict[str, float]:
        """Validation accuracies after the training, by the method's own rule."""
        new = self.start == NOTHING
        settings = MethodsParams.read(self.params) if new else TuningParams.read(self.params)
        share = settings.rate if isinstance(settings, TuningParams) else 1.0
        if self.longer != 1:
            settings = lengthened(settings, max(1, round(settings.epochs * self.longer)))
        tasks, device = self.tasks("train"), choose_device("auto")
        with seeded(SEED):
            learner: Learner = find_method(self.method).build(self.backbone(tasks)).to(device)
        if self.scale != NOTHING:
            nn.init.constant_(learner.scale, float(self.scale))
        if self.regularizer != NOTHING:
            learner.regularizer = float(self.regularizer)
        if not new:
            known = load_learned(self.folder / f"seed{START_SEED}" / self.start / places.MODEL, device, self.images)
            learner.backbone.load_state_dict(known.backbone.state_dict())
        schedule = Schedule(
            **settings.schedule(),
            learning_rate=self.rate,
            optimizer=self.optimizer,
            embedding_rate=share,
            rate_name="the learning rate",
        )
        train_on_tasks(
            learner,
            self.images,
            tasks,
            self.training("methods", schedule),
            tasks_per_epoch=settings.tasks_per_epoch,
            tasks_per_step=settings.tasks_per_step,
        )
        return means(own_rule(learner, self.images, self.tasks("val"), EvaluateParams.read(self.params).shots))


def main(
    data: Annotated[str, typer.Option(help="data set")] = "glyphs",
    methods: Annotated[list[str] | None, typer.Option(help="by default all that learn from tasks")] = None,
    start: Annotated[str, typer.Option(help="system to go on from, such as mela-rfs")] = NOTHING,
    longer: Annotated[float, typer.Option(help="share of the schedule's epochs")] = 1.0,
    adam: Annotated[list[float] | None, typer.Option(help="rates of Adam to try; by default several of both")] = None,
    scale: Annotated[list[float] | None, typer.Option(help="scales to try; by default each method's own")] = None,
    regularizer: Annotated[list[float] | None, typer.Option(help="regularizers to try; likewise")] = None,
    out: Annotated[Path, typer.Option(help="the table")] = Path("results/method_rates.csv"),
) -> None:
    """All rates, scales and regularizers of all methods."""
    names = methods or [name for name in method_names() if find_method(name).sees == "tasks"]
    rates: list[tuple[Optimizer, float]] = [("adam", rate) for rate in adam] if adam else RATES
    trials = []
    for (optimizer, rate), name in product(rates, names):
        scales, regularizers = _tried(name, "initial_scale", scale), _tried(name, "regularizer", regularizer)
        for own_scale, own_regularizer in product(scales, regularizers):
            trial = MethodTrial(
                data=data,
                method=name,
                start=start,
                longer=longer,
                optimizer=optimizer,
                rate=rate,
                scale=own_scale,
                regularizer=own_regularizer,
            )
            trials.append(trial)
    complete(out, trials)


def _tried(name: str, attribute: str, values: list[float] | None) -> list[str]:
    """Values to try of what a method has, by default its own; `NOTHING` where it has none."""
    own = getattr(find_method(name).learner, attribute, None)
    return [NOTHING] if own is None else [f"{value:g}" for value in values or [own]]


if __name__ == "__main__":
    typer.run(main)
