"""Try learning rate, logit scale and regularizer of methods, for ``python -m studies training.method_rates``."""

import math
from functools import cache
from typing import Any, Literal, NamedTuple

from torch import nn

from benchmark import places
from mela.evaluation.rules import own_rule
from mela.learners.base import Learner
from mela.methods import find_method, method_names
from mela.models.backbones import Backbone, build_backbone
from mela.params import EvaluateParams, MethodsParams, TuningParams
from mela.runtime.device import choose_device
from mela.runtime.seeding import seeded
from mela.training.learner_files import load_learned
from mela.training.schedule import Schedule
from studies.lab import plain, trained_longer
from studies.training import trials
from studies.training.trials import SEED, Trial, means
from studies.training.variants import VARIANTS

NOTHING, OWN, LOGISTIC = "nothing", "own", "logistic"
METHODS = [name for name in method_names() if find_method(name).sees == "tasks"]
# what methods learn under a name of their own, of regularizers the logarithm
SCALES = {"frn": "gamma"}
REGULARIZERS = {"frn": "alpha", "r2d2": "log_lambda"}


class Head(NamedTuple):
    """Hold the scale and the regularizer that a method starts from, as the table has them."""

    scale: str
    regularizer: str


@cache
def own_head(name: str) -> Head:
    """Return a method's own head, unless a trial says otherwise: FRN's scale is gamma, its regularizer exp(alpha)."""
    backbone = build_backbone(**plain("conv4", size=28, channels=1, width=1), seed=0)
    learner = untrained(name, backbone).requires_grad_(requires_grad=False)
    scale = getattr(learner, SCALES.get(name, "scale"), None)
    regularizer = getattr(learner, REGULARIZERS[name]).exp() if name in REGULARIZERS else learner.regularizer
    return Head(*(NOTHING if value is None else f"{float(value):g}" for value in (scale, regularizer)))


def untrained(name: str, backbone: Backbone) -> Learner:
    """Return an untrained learner, of a method or of a variant of one."""
    make = VARIANTS.get(name) or find_method(name).build
    return make(backbone)


def with_own_head(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell of the grid with the method's own scale and regularizer unless others are asked for.

    A method that has none is not tried with any, and `LOGISTIC` trains nothing.
    """
    if cell["method"] == LOGISTIC:
        return cell | {"longer": 0.0, "optimizer": "adam", "rate": 0.0, "scale": NOTHING, "regularizer": NOTHING}
    own = own_head(cell["method"])._asdict()
    asked = {name: value for name, value in own.items() if value != NOTHING and cell[name] != OWN}
    return cell | own | {name: f"{float(cell[name]):g}" for name in asked}


def measure(
    *,
    data: str,
    method: str,
    start: str,
    longer: float,
    optimizer: Literal["sgd", "adam"],
    rate: float,
    scale: str,
    regularizer: str,
) -> dict[str, float]:
    """Return validation accuracies after the training, by the method's own rule.

    Parameters
    ----------
    data, method, optimizer, rate
        A data set of the benchmark, a method or one of `studies.training.variants.VARIANTS`, and how it is trained.
    start : str
        System whose embedding it goes on from; or `NOTHING`.
    longer : float
        Share of the schedule's epochs; 0 for the method's rule on what it starts from.
    scale : str
        Scale of the logits at the start; `NOTHING` if the method does not learn it.
    regularizer : str
        Regularizer of the head, at the start if it is learned; `NOTHING` if it has none.
    """
    trial, device = Trial.of(data), choose_device("auto")
    if start != NOTHING:
        folder = trial.folder / f"seed{trials.START_SEED}" / start
        begun = load_learned(folder / places.MODEL, device, trial.images).backbone
    if method == LOGISTIC:
        return trial.validated(trial.untrained() if start == NOTHING else begun)
    with seeded(SEED):
        learner = untrained(method, trial.untrained()).to(device)
    if scale != NOTHING:
        nn.init.constant_(getattr(learner, SCALES.get(method, "scale")), float(scale))
    if method in REGULARIZERS:
        nn.init.constant_(getattr(learner, REGULARIZERS[method]), math.log(float(regularizer)))
    elif regularizer != NOTHING:
        learner.regularizer = float(regularizer)
    if start != NOTHING:
        learner.backbone.load_state_dict(begun.state_dict())
    if longer:
        settings = trained_longer(trial.block(MethodsParams if start == NOTHING else TuningParams), longer)
        share = settings.rate if isinstance(settings, TuningParams) else 1.0
        how: dict[str, Any] = {"learning_rate": rate, "optimizer": optimizer, "embedding_rate": share}
        schedule = Schedule(**settings.schedule(), **how, rate_name="the learning rate")
        trial.learn(learner, trial.tasks("train"), settings, schedule)
    return means(own_rule(learner, trial.images, trial.tasks("val"), trial.block(EvaluateParams).shots))
