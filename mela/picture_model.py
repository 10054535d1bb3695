"""A trained model, and what it makes of pictures."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mela.backbones import Backbone
from mela.device import choose_device
from mela.errors import MelaError
from mela.extraction import extract_features, feature_batches
from mela.images import to_unit
from mela.learned import load_learned
from mela.learner import Learner
from mela.pictures import Pictures, packed_blocks

Features = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

QUERIES = 64  # at a time through a rule, some of which adapt the whole network


@dataclass(frozen=True)
class Embedding:
    """A backbone, and the size (side in pixels) and channels of the images that it takes.

    Attributes
    ----------
    method : str or None
        What has learned it, if that is in the file.
    learner : Learner or None
        The method with its own rule, around the same backbone, if it has one.
    """

    backbone: Backbone
    size: int
    channels: int
    method: str | None = None
    learner: Learner | None = None

    @classmethod
    def read(cls, path: Path, device: str) -> "Embedding":
        """From a file, onto a device by name."""
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
            raise MelaError(f"device: expected auto, cpu, cuda or cuda:N, got {device!r}")
        found = load_learned(path, choose_device(device))
        learner = found.learner if isinstance(found.learner, Learner) else None
        return cls(found.backbone, found.configuration["size"], found.configuration["channels"], found.method, learner)

    def blocks(self, pictures: Pictures, name: str, change: Callable[[Tensor], Tensor] = to_unit) -> Iterator[Features]:
        """Features (b, m) of images, a block of them at a time."""
        for block in packed_blocks(pictures, name, size=self.size, channels=self.channels):
            yield extract_features(self.backbone, block, np.arange(len(block)), change)

    def seen(self, learner: Learner, pictures: Pictures, name: str) -> Iterator[Features]:
        """What a method's rule needs (b, ...) of images, a block of them at a time."""
        for block in packed_blocks(pictures, name, size=self.size, channels=self.channels):
            yield np.concatenate([found for _, found in feature_batches(learner, block, np.arange(len(block)))])


def by_rule(
    learner: Learner, support: Features, targets: npt.NDArray[np.int64], queries: Features, ways: int
) -> Floats:
    """Logits (q, ways) by a method's own rule, of what it needs of images: `support` (n, ...), `queries` (q, ...)."""
    device = next(learner.parameters()).device
    own, labels = torch.from_numpy(support)[None].to(device), torch.from_numpy(targets)[None].to(device)
    with torch.no_grad():
        parts = [
            learner.logits(own, labels, part[None].to(device), ways)[0]
            for part in torch.from_numpy(queries).split(QUERIES)
        ]
        return torch.cat(parts).double().cpu().numpy()
