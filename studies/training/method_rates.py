"""Which learning rate, logit scale and regularizer suit a method, and what longer training gives, by validation tasks.

``python -m studies.training.method_rates`` after ``dvc repro`` in benchmark/ has drawn the tasks, and trained what
``--start`` names; goes on where it stopped, and writes studies/results/method_rates.csv. The rates and scales that
methods have in `mela.methods` were chosen by this table, as was what R2-D2's regularizer starts from; other
regularizers are those of their authors. `studies.training.chosen_rates` chooses from it the rates that data sets have
of their own. With ``--longer 0`` nothing is trained, and ``--methods logistic`` is the logistic head on what
``--start`` names.
"""

import math
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from torch import nn

from benchmark import places
from mela.data.episodes import Episodes
from mela.evaluation.rules import own_rule
from mela.learners.base import Learner
from mela.methods import find_method, method_names
from mela.models.backbones import Backbone, build_backbone
from mela.params import EvaluateParams, MethodsParams, TuningParams
from mela.runtime.device import choose_device
from mela.runtime.seeding import seeded
from mela.training.learner_files import load_learned
from mela.training.loop import Schedule
from mela.training.on_tasks import train_on_tasks
from studies.cells import lengthened, logistic_accuracies
from studies.training.trials import SEED, Optimizer, Trial, complete, means
from studies.training.variants import VARIANTS

START_SEED = 0
NOTHING = "nothing"
LOGISTIC = "logistic"
# what methods learn under a name of their own, of regularizers the logarithm
SCALES = {"frn": "gamma"}
REGULARIZERS = {"frn": "alpha", "r2d2": "log_lambda"}
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
        The name of a method or of one of `studies.training.variants.VARIANTS`; or `LOGISTIC`, which trains nothing.
    start : str
        System whose embedding it goes on from, of seed `START_SEED`; or `NOTHING`.
    longer : float
        Share of the schedule's epochs; 0 for the method's rule on what it starts from.
    optimizer : {"sgd", "adam"}
    rate : float
    scale : str
        Of the logits, at the start; or `NOTHING` where the method does not learn it. FRN's is gamma.
    regularizer : str
        Of the head, at the start where it is learned, as R2-D2's lambda and FRN's exp(alpha); or `NOTHING` where it
        has none.
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
        tasks, device, head = self.tasks("train"), choose_device("auto"), EvaluateParams.read(self.params)
        start = None
        if self.start != NOTHING:
            folder = self.folder / f"seed{START_SEED}" / self.start
            start = load_learned(folder / places.MODEL, device, self.images).backbone
        if self.method == LOGISTIC:
            embedding = self.backbone(tasks) if start is None else start
            return means(logistic_accuracies(embedding, self.images, self.tasks("val"), head))
        with seeded(SEED):
            learner = untrained(self.method, self.backbone(tasks)).to(device)
        if self.scale != NOTHING:
            nn.init.constant_(getattr(learner, SCALES.get(self.method, "scale")), float(self.scale))
        if self.regularizer != NOTHING:
            if self.method in REGULARIZERS:
                nn.init.constant_(getattr(learner, REGULARIZERS[self.method]), math.log(float(self.regularizer)))
            else:
                learner.regularizer = float(self.regularizer)
        if start is not None:
            learner.backbone.load_state_dict(start.state_dict())
        if self.longer:
            self.train(learner, tasks)
        return means(own_rule(learner, self.images, self.tasks("val"), head.shots))

    def train(self, learner: Learner, tasks: Episodes) -> None:
        """As long, and at the rate, that the row says."""
        new = self.start == NOTHING
        settings = MethodsParams.read(self.params) if new else TuningParams.read(self.params)
        if self.longer != 1:
            settings = lengthened(settings, max(1, round(settings.epochs * self.longer)))
        schedule = Schedule(
            **settings.schedule(),
            learning_rate=self.rate,
            optimizer=self.optimizer,
            embedding_rate=settings.rate if isinstance(settings, TuningParams) else 1.0,
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


def main(
    data: Annotated[str, typer.Option(help="data set")] = "glyphs",
    methods: Annotated[list[str] | None, typer.Option(help="by default all that learn from tasks; or logistic")] = None,
    start: Annotated[str, typer.Option(help="system to go on from, such as merged-rfs")] = NOTHING,
    longer: Annotated[float, typer.Option(help="share of the schedule's epochs")] = 1.0,
    adam: Annotated[list[float] | None, typer.Option(help="rates of Adam to try; by default several of both")] = None,
    scale: Annotated[list[float] | None, typer.Option(help="scales to try; by default each method's own")] = None,
    regularizer: Annotated[list[float] | None, typer.Option(help="regularizers to try; likewise")] = None,
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/method_rates.csv"),
) -> None:
    """All rates, scales and regularizers of all methods."""
    names = methods or [name for name in method_names() if find_method(name).sees == "tasks"]
    rates: list[tuple[Optimizer, float]] = [("adam", rate) for rate in adam] if adam else RATES
    trials: list[MethodTrial] = []
    if LOGISTIC in names:
        nothing = {"scale": NOTHING, "regularizer": NOTHING}
        trials.append(
            MethodTrial(data=data, method=LOGISTIC, start=start, longer=0, optimizer="adam", rate=0, **nothing)
        )
    for (optimizer, rate), name in product(rates, [name for name in names if name != LOGISTIC]):
        own = own_head(name)
        scales, regularizers = _tried(own.scale, scale), _tried(own.regularizer, regularizer)
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


class Head(NamedTuple):
    """The scale and the regularizer that a method starts from, as the table has them."""

    scale: str
    regularizer: str


@cache
def own_head(name: str) -> Head:
    """What a method has where a trial says nothing else."""
    backbone = build_backbone(
        name="conv4", channels=1, size=28, width=1, drop_rate=0, drop_block=1, mean=[0], std=[1], seed=0
    )
    learner = untrained(name, backbone).requires_grad_(requires_grad=False)
    scale = getattr(learner, SCALES.get(name, "scale"), None)
    regularizer = getattr(learner, REGULARIZERS[name]).exp() if name in REGULARIZERS else learner.regularizer
    return Head(*(NOTHING if value is None else f"{float(value):g}" for value in (scale, regularizer)))


def untrained(name: str, backbone: Backbone) -> Learner:
    """Return a learner that is not trained yet, of a method or of a variant of one."""
    make = VARIANTS.get(name) or find_method(name).build
    learner: Learner = make(backbone)
    return learner


def _tried(own: str, values: list[float] | None) -> list[str]:
    """Values to try of what a method has, by default its own; `NOTHING` where it has none."""
    return [own] if own == NOTHING or not values else [f"{value:g}" for value in values]


if __name__ == "__main__":
    typer.run(main)
