"""Train methods on the tasks of a pipeline that has run, with its network and as many images as its embedding.

So what learns from tasks alone stands beside what learns labels, on the same test tasks.
"""

import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch

from mela.data.array_types import Images
from mela.data.episodes import Episodes
from mela.evaluation.rules import own_rule
from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.learners.base import Learner
from mela.params import AugmentParams, EmbedParams, EvaluateParams, MethodsParams, ModelParams
from mela.runtime.compute import Compute
from mela.runtime.device import choose_dtype
from mela.runtime.seeding import seeded
from mela.training.checkpoint import steady
from mela.training.schedule import Schedule
from stages.common import paths
from stages.common.checkpoints import checkpoint
from studies.lab import Lab, wide
from studies.labels.worth import compared_by_dataset, tested_in
from studies.training.method_rates import untrained
from studies.training.trials import means

MANIFESTS = {"train": paths.TRAIN, "val": paths.VAL, "test": paths.TEST}
CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class Run(Lab):
    """Hold images and tasks of a pipeline that has run in a folder of its own."""

    @classmethod
    def of(cls, folder: Path, seed: int) -> "Run":
        """Return what a pipeline has in its folder, to train on the CPU with a seed."""
        params = folder / "params.yaml"
        dtype = choose_dtype(ModelParams.read(params).precision, CPU)
        return cls(params=params, folder=folder, seed=seed, compute=Compute(dtype=dtype))

    @cached_property
    def images(self) -> Images:
        """All images, packed."""
        return store.open_images(self.folder / paths.IMAGES)

    def tasks(self, split: str) -> Episodes:
        """Return the tasks of a split."""
        return Episodes(read_manifest(self.folder / MANIFESTS[split]))

    def settings(self, share: float, *, rotated: bool) -> MethodsParams:
        """Return how methods train: on so much of the tasks of each epoch of the initial embedding, as many epochs."""
        known = self.block(EmbedParams).model_dump()
        of_epoch = round(share * (known["tasks_per_epoch"] or len(self.tasks("train"))))
        own = {name: value for name, value in known.items() if name in MethodsParams.model_fields}
        return MethodsParams.model_validate(own | {"tasks_per_epoch": of_epoch, "rotated_classes": rotated})


def measure(
    *,
    data: str,
    seed: int,
    method: str,
    tasks: Literal["upright", "rotated"],
    optimizer: Literal["sgd", "adam"],
    rate: float,
    share: float,
    projects: Path,
) -> list[dict[str, Any]]:
    """Return validation accuracies by a method's own rule and, after a whole training, test accuracies.

    With several data sets, there is a row for all test tasks and then one for those of each.

    Parameters
    ----------
    data : str
        A preset; its pipeline ran in the folder DATA_0 of `projects`.
    seed : int
        Of the training.
    method : str
        A method that sees tasks, or one of `studies.training.variants.VARIANTS`.
    tasks : {"upright", "rotated"}
        With rotated ones, a class in each of its four rotations is a class of its own.
    optimizer, rate
        With which it is trained.
    share : float
        Share of the training; with less than 1 no test task is read, so that a rate can be chosen.
    projects : Path
    """
    own = Run.of(projects / f"{data}_0", seed)
    settings = own.settings(share, rotated=tasks == "rotated")
    schedule = Schedule(**settings.schedule(), learning_rate=rate, optimizer=optimizer, rate_name="the learning rate")
    with steady(own.folder / paths.IMAGES, own.folder / paths.TRAIN) as inputs:
        training = own.tasks("train")
    with seeded(seed):
        learner = untrained(method, own.backbone(training.image_ids()))
    blocks = [settings.model_copy(update={"seed": seed}), own.block(ModelParams), own.block(AugmentParams)]
    kept = checkpoint(f"{method}-{optimizer}-{rate:g}", blocks, inputs, CPU, own.compute, 60)
    # nobody knows how long the part before an interruption took
    whole, began = not kept.path.exists(), time.process_time()
    own.learn(learner, training, settings, schedule, kept)
    found: dict[str, Any] = {"minutes": (time.process_time() - began) / 60} if whole else {}
    kept.remove()
    of_task = sum(len(task.image_ids) for task in training) / len(training)
    found["images"] = round(settings.epochs * settings.tasks_per_epoch * of_task)
    for setting, mean in means(_accuracies(own, learner, "val")).items():
        found[f"validation_{setting}"] = mean
    if share < 1:
        return [{"dataset": "all", **found}]
    tested = wide(_accuracies(own, learner, "test"))
    first, *others = compared_by_dataset(own.folder, tested, tested_in(own.folder, "oracle"))
    return [found | first, *others]


def _accuracies(own: Run, learner: Learner, split: str) -> pd.DataFrame:
    return own_rule(learner, own.images, own.tasks(split), own.block(EvaluateParams).shots)
