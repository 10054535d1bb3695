"""What all trainings of methods have in common, whatever they learn from."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmark import places
from mela import store
from mela.atomic import together
from mela.augmentation import Augmentation
from mela.checkpoints import Checkpoint
from mela.errors import MelaError
from mela.learned import AnyLearner, save_learner
from mela.params import AugmentParams, MethodsParams, ModelParams, PretrainParams, RuntimeParams
from mela.training import Epoch, curve_table, log_epoch
from stages.checkpoints import checkpoint
from stages.processes import computing


@dataclass(frozen=True, kw_only=True)
class Training:
    """One training of a method that has begun.

    Attributes
    ----------
    method : str
    device : torch.device
    options : dict
        What `mela.flat_training` and `mela.meta_training` both take.
    checkpoint : Checkpoint
    """

    method: str
    device: torch.device
    options: dict[str, Any]
    checkpoint: Checkpoint

    def save(self, out: Path, learner: AnyLearner, configuration: dict[str, Any], epochs: Sequence[Epoch]) -> None:
        """Write what was learned and its curve into a folder, and let the checkpoint go."""
        with together():
            save_learner(out / places.MODEL, learner, self.method, configuration)
            store.write_csv(out / places.CURVE, curve_table(epochs))
        self.checkpoint.remove()


@contextmanager
def training(
    kind: str, method: str, settings: MethodsParams | PretrainParams, params: Path, inputs: Mapping[str, str]
) -> Iterator[Training]:
    """Whatever a training needs beside a learner, its data and its schedule.

    Parameters
    ----------
    kind : str
        What the method learns from.
    method : str
    settings : MethodsParams or PretrainParams
    params : Path
        Of the other blocks.
    inputs : mapping of str to str
        All other files that it depends on, and their SHA-256.
    """
    model, augment, runtime = ModelParams.read(params), AugmentParams.read(params), RuntimeParams.read(params)
    stage = f"{kind}: {method}"
    with computing(stage, "steps", runtime, model.precision) as (device, compute, watch):
        if max(compute.team.size, runtime.processes) > 1:
            # some methods draw or remember things that every process would have of its own
            found = max(compute.team.size, runtime.processes)
            raise MelaError(f"runtime.processes: expected 1 in the benchmark, got {found}; run cells side by side")
        kept = checkpoint(
            f"{kind}-{method}", [settings, model, augment], inputs, device, compute, runtime.checkpoint_seconds
        )
        augmentation = Augmentation(**augment.model_dump())
        options = {
            "stage": settings.block,
            "augmentation": augmentation,
            "accumulate": settings.accumulate,
            "seed": settings.seed,
            "compute": compute,
            "checkpoint": kept,
            "on_epoch": log_epoch(stage, settings.epochs),
            "watch": watch,
        }
        yield Training(method=method, device=device, options=options, checkpoint=kept)
