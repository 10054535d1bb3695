"""Methods with one thing changed, which tells why they are behind where they are: on validation tasks.

``python -m studies.training.variants`` once the tasks are drawn (``dvc --cd benchmark repro manifest@glyphs``, say);
goes on where it stopped, and writes studies/results/variants.csv.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from torch import Tensor

from benchmark.stages.common import own_schedule
from mela.evaluation.rules import own_rule
from mela.learners.base import Learner
from mela.methods.anil import ANIL
from mela.methods.metaoptnet_svm import MetaOptNetSVM
from mela.models.backbones import Backbone
from mela.params import EvaluateParams, MethodsParams
from mela.runtime.device import choose_device
from mela.runtime.seeding import seeded
from mela.training.on_tasks import train_on_tasks
from studies.training.trials import SEED, Trial, complete, means


def svm_with_ridge(backbone: Backbone, ridge: float) -> MetaOptNetSVM:
    """Return MetaOptNet's machine with another ridge on the diagonal of its Gram matrix than the authors' 1.

    Parameters
    ----------
    backbone : Backbone
    ridge : float
        0 for the machine as the paper's equations have it, which can tell any support set apart and leaves the
        embedding little to learn.
    """
    learner = MetaOptNetSVM(backbone)
    learner.ridge = ridge
    return learner


class JointANIL(ANIL):
    """ANIL whose BatchNorm has the statistics of support set and queries together, in training and in testing.

    So queries tell of each other, as with MAML's authors.
    """

    def _features(self, weights: dict[str, Tensor], images: Tensor, n_support: int) -> Tensor:
        del n_support
        return super()._features(weights, images, len(images))


VARIANTS: dict[str, Callable[[Backbone], Learner]] = {
    "metaoptnet_svm": MetaOptNetSVM,
    "metaoptnet_svm without a ridge": partial(svm_with_ridge, ridge=0),
    "metaoptnet_svm with a ridge of 50": partial(svm_with_ridge, ridge=50),
    "anil": ANIL,
    "anil with joint statistics": JointANIL,
}


@dataclass(frozen=True, kw_only=True)
class VariantTrial(Trial):
    """A method as the benchmark trains it at the method's own learning rate, or a variant of it.

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
    out: Annotated[Path, typer.Option(help="the table")] = Path("studies/results/variants.csv"),
) -> None:
    """All variants on all data sets, each beside the method itself."""
    for name in variants or []:
        if name not in VARIANTS:
            raise typer.BadParameter(f"--variant: expected one of {', '.join(VARIANTS)}, got {name!r}")
    complete(out, [VariantTrial(data=name, variant=one) for name, one in product(data, variants or VARIANTS)])


if __name__ == "__main__":
    typer.run(main)
