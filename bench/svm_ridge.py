"""Why MetaOptNet's support vector machine is behind its ridge head: the machine with a ridge, on validation tasks.

``python -m bench.svm_ridge`` once the tasks are drawn (``dvc --cd benchmark repro manifest@glyphs``, say); goes on
where it stopped, and writes results/svm_ridge.csv. A machine that can tell any support set apart leaves the embedding
little to learn; a number on the diagonal of the Gram matrix, as ridge regression has its lambda there, keeps it from
that.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated

import torch
import typer
from torch import Tensor

from bench.trials import SEED, Trial, complete, means
from benchmark.training import own_schedule
from mela.backbones import Backbone
from mela.device import choose_device
from mela.meta_test import own_rule
from mela.meta_training import train_on_tasks
from mela.methods.metaoptnet_svm import MetaOptNetSVM
from mela.params import EvaluateParams, MethodsParams
from mela.seeding import seeded


class RidgeSVM(MetaOptNetSVM):
    """The machine with a ridge on the diagonal of the Gram matrix of the support set, in training and in testing.

    Each support image has a dimension of its own besides, of the square root of the ridge, which no query has.
    """

    def __init__(self, backbone: Backbone, ridge: float) -> None:
        super().__init__(backbone)
        self.ridge = ridge

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Logits (t, q, ways); see `Learner.logits`."""
        if self.ridge == 0:
            return super().logits(support, labels, query, ways)
        tasks, count, _ = support.shape
        own = self.ridge**0.5 * torch.eye(count, dtype=support.dtype, device=support.device)
        none = query.new_zeros(*query.shape[:2], count)
        wider = torch.cat([support, own.expand(tasks, count, count)], dim=2)
        return super().logits(wider, labels, torch.cat([query, none], dim=2), ways)


@dataclass(frozen=True, kw_only=True)
class RidgeTrial(Trial):
    """The machine as the benchmark trains it, with a ridge.

    Attributes
    ----------
    ridge : float
        0 for the machine of the benchmark; the authors' code has 1.
    """

    ridge: float

    def measure(self) -> dict[str, float]:
        """Validation accuracies by its own rule."""
        tasks, settings = self.tasks("train"), MethodsParams.read(self.params)
        with seeded(SEED):
            learner = RidgeSVM(self.backbone(tasks), self.ridge).to(choose_device("auto"))
        train_on_tasks(
            learner,
            self.images,
            tasks,
            self.training("methods", own_schedule(settings, learner)),
            tasks_per_epoch=settings.tasks_per_epoch,
            tasks_per_step=settings.tasks_per_step,
        )
        return means(own_rule(learner, self.images, self.tasks("val"), EvaluateParams.read(self.params).shots))


def main(
    data: Annotated[list[str], typer.Option("--data", help="data sets")] = ["glyphs"],  # noqa: B006
    ridge: Annotated[list[float], typer.Option("--ridge", help="on the diagonal")] = [0, 1, 50],  # noqa: B006
    out: Annotated[Path, typer.Option(help="the table")] = Path("results/svm_ridge.csv"),
) -> None:
    """All ridges on all data sets."""
    complete(out, [RidgeTrial(data=name, ridge=float(one)) for name, one in product(data, ridge)])


if __name__ == "__main__":
    typer.run(main)
