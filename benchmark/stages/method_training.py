"""Share what all trainings of methods need, whatever they learn from."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from benchmark import places
from mela.errors import MelaError
from mela.io import store
from mela.io.atomic import together
from mela.learners.base import ImageLearner, Learner
from mela.params import AugmentParams, ModelParams, RatesParams, RuntimeParams
from mela.training.checkpoint import Checkpoint
from mela.training.learner_files import AnyLearner, save_learner
from mela.training.loop import Epoch, Training, curve_table
from mela.training.schedule import Schedule
from stages.common.checkpoints import checkpoint
from stages.common.computing import computing
from stages.common.training_setup import training_of

if TYPE_CHECKING:
    # a stage depends on the block that it reads, and not on those of other trainings
    from mela.params import MethodsParams, PretrainParams


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Hold what a training of a method has before there is a learner.

    Attributes
    ----------
    method : str
    device : torch.device
    training_by : callable
        The training by a schedule.
    checkpoint : Checkpoint
    """

    method: str
    device: torch.device
    training_by: Callable[[Schedule], Training]
    checkpoint: Checkpoint

    def save(self, out: Path, learner: AnyLearner, configuration: dict[str, Any], epochs: Sequence[Epoch]) -> None:
        """Write what was learned and its curve into a folder, and remove the checkpoint."""
        with together():
            save_learner(out / places.MODEL, learner, self.method, configuration)
            store.write_csv(out / places.CURVE, curve_table(epochs))
        self.checkpoint.remove()


def own_schedule(
    settings: "MethodsParams | PretrainParams", learner: Learner | ImageLearner, embedding_rate: float = 1
) -> Schedule:
    """Return the schedule of a method with a learning rate of its own; the embedding may learn at a share of it."""
    return Schedule(
        **settings.schedule() | {"learning_rate": learner.learning_rate},
        optimizer=learner.optimizer,
        embedding_rate=embedding_rate,
        rate_name=f"learning_rate of {type(learner).__name__}",
    )


@contextmanager
def prepared(
    kind: str,
    method: str,
    settings: "MethodsParams | PretrainParams",
    params: Path,
    inputs: Mapping[str, str],
    rates: RatesParams = RatesParams(),  # noqa: B008
) -> Iterator[Prepared]:
    """Prepare all that a training needs beside a learner, its data and its schedule.

    Parameters
    ----------
    kind : str
        What the method learns from.
    method : str
    settings : MethodsParams or PretrainParams
    params : Path
        File of the other blocks.
    inputs : mapping of str to str
        All other files that it depends on, and their SHA-256.
    rates : RatesParams
        Rate of this method, if the data set names one.
    """
    model, augment, runtime = ModelParams.read(params), AugmentParams.read(params), RuntimeParams.read(params)
    stage = f"{kind}: {method}"
    with computing(stage, "steps", runtime, model.precision) as (device, compute, watch):
        processes = max(compute.team.size, runtime.processes)
        if processes > 1:
            # some methods draw or remember things that every process would have of its own
            raise MelaError(f"runtime.processes: expected 1 in the benchmark, got {processes}; run cells side by side")
        kept = checkpoint(
            f"{kind}-{method}", [settings, model, augment, rates], inputs, device, compute, runtime.checkpoint_seconds
        )
        training_by = partial(training_of, settings, augment, compute=compute, checkpoint=kept, watch=watch, name=stage)
        yield Prepared(method=method, device=device, training_by=training_by, checkpoint=kept)
