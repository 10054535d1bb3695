"""Hold what goes into a pre-training and what comes out of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from torch import nn

from mela.models.backbones import Backbone
from mela.params import AugmentParams, ModelParams, PretrainParams, RuntimeParams
from mela.runtime.compute import Compute
from mela.training.checkpoint import Checkpoint
from mela.training.loop import Epoch
from stages.common.learned_part import LearnedPart


class Settings(NamedTuple):
    """Hold the blocks of parameters, read once, before the inputs."""

    pretrain: PretrainParams
    model: ModelParams
    augment: AugmentParams
    runtime: RuntimeParams

    @classmethod
    def read(cls, params: Path) -> "Settings":
        """Read all of them."""
        return cls(
            PretrainParams.read(params),
            ModelParams.read(params),
            AugmentParams.read(params),
            RuntimeParams.read(params),
        )


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """Hold what `pretrain_on` returns: an embedding, what was trained of it, its classifier and its curve."""

    backbone: Backbone
    part: LearnedPart
    classifier: nn.Linear
    epochs: list[Epoch]
    compute: Compute
    kept: Checkpoint

    @property
    def precision(self) -> str:
        """Name of the numbers that it was trained in."""
        return str(self.compute.dtype).removeprefix("torch.")

    def remove(self) -> None:
        """Delete the state of the training, once its results are written."""
        self.kept.remove()
        self.part.remove()
