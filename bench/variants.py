"""Methods with one thing changed, which tells why they are behind where they are: on validation tasks.

``python -m bench.variants`` once the tasks are drawn (``dvc --cd benchmark repro manifest@glyphs``, say); goes on where
it stopped, and writes results/variants.csv.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
from mela.learner import Learner
from mela.meta_test import own_rule
from mela.meta_training import train_on_tasks
from mela.methods.anil import ANIL
from mela.methods.metaoptnet_svm import MetaOptNetSVM
from mela.params import EvaluateParams, MethodsParams
from mela.seeding import seeded


class RidgeSVM(MetaOptNetSVM):
    """MetaOptNet's machine with a ridge on the diagonal of the Gram matrix, in training and in testing.

    A machine that can tell any support set apart leaves the embedding little to learn; a ridge keeps it from that, as
    lambda does ridge regression. The authors' code has 1. Each support image has a dimension of its own besides, of the
    square root of the ridge, which no query has.
    """

    def __init__(self, backbone: Backbone, ridge: float) -> None:
        super().__init__(backbone)
        self.ridge = ridge

    def logits(self, support: Tensor, labels: Tensor, query: Tensor, ways: int) -> Tensor:
        """Logits (t, q, ways); see `Learner.logits`."""
        tasks, count, _ = support.shape
        own = self.ridge**0.5 * torch.eye(count, dtype=support.dtype, device=support.device)
        none = query.new_zeros(*query.shape[:2], count)
        wider = torch.cat([support, own.expand(tasks, count, count)], dim=2)
        return super().logits(wider, labels, torch.cat([query, none], dim=2), ways)


class JointANIL(ANIL):
    """ANIL whose BatchNorm has the statistics of support set and queries together, in training and in testing.

    So queries tell of each other, as with MAML's authors.
    """

    def _features(self, weights: dict[str, Tensor], images: Tensor, n_support: int) -> Tensor:
        del n_support
        return super()._features(weights, images, len(images))


VARIANTS: dict[str, Callable[[Backbone], Learner]] = {
    "metaoptnet_svm": MetaOptNetSVM,
    "metaoptnet_svm with a ridge of 1": partial(RidgeSVM, ridge=1),
    "metaoptnet_svm with a ridge of 50": partial(RidgeSVM, ridge=50),
    "anil": ANIL,
    "anil with joint statistics": JointANIL,
}


@dataclass(frozen=True, kw_only=True)
class VariantTrial(Trial):
    """A method as the benchmark trains it, or a variant of it.

    Attributes
    ----------
    variant : str
        One of `VARIANTS`.
    """

    variant: str

    def measure(self) -> dict[str, float]:
        """Validation accuracies by its own rule."""
        tasks, settings = self.tasks("train"), MethodsParams.read(self.params)
        with seeded(SEED):
            learner = VARIANTS[self.variant](self.backbone(tasks)).to(choose_device("auto"))
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
    variants: Annotated[list[str] | None, typer.Option("--variant", help=" | ".join(VARIANTS))] = None,
    out: Annotated[Path, typer.Option(help="the table")] = Path("results/variants.csv"),
) -> None:
    """All variants on all data sets, each beside the method itself."""
    for name in variants or []:
        if name not in VARIANTS:
            raise typer.BadParameter(f"--variant: expected one of {', '.join(VARIANTS)}, got {name!r}")
    complete(out, [VariantTrial(data=name, variant=one) for name, one in product(data, variants or VARIANTS)])


if __name__ == "__main__":
    typer.run(main)
