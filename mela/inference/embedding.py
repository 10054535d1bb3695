"""Embed images by a trained model."""

import re
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mela.data.array_types import Features, Floats, Ints
from mela.data.images import to_unit
from mela.errors import MelaError, UnsolvableError
from mela.evaluation.temperature_files import Temperatures, read_temperatures
from mela.inference.input_images import Pictures, packed_blocks
from mela.learners.base import Learner
from mela.models.backbones import Backbone
from mela.models.features import extract_features, feature_batches
from mela.runtime.device import choose_device
from mela.training.learner_files import load_learned

# queries at a time through a rule: each time it may learn from the support set anew, and images go through the network
IMAGES = 128
BYTES = 16 * 2**20


@dataclass(frozen=True, eq=False)
class Embedding:
    """Embed images of any size by a trained backbone, alone or with a method's own rule.

    Attributes
    ----------
    backbone : Backbone
    size, channels : int
        Side in pixels and channels of the images that it takes.
    method : str or None
        What has learned it, if that is in the file.
    learner : Learner or None
        The method around the same backbone, if it has a rule of its own.
    temperatures : Temperatures or None
        Temperatures of the logistic head, if calibrated.
    """

    backbone: Backbone
    size: int
    channels: int
    method: str | None = None
    learner: Learner | None = None
    temperatures: Temperatures | None = None
    # some rules change the network while they are at work
    _alone: Any = field(default_factory=Lock, repr=False)

    @classmethod
    def read(cls, path: Path, device: str) -> "Embedding":
        """Read an embedding from a file onto a device by name.

        Raises
        ------
        MelaError
            There is no such device, or the file is missing, damaged or no model.
        """
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
            raise MelaError(f"device: expected auto, cpu, cuda or cuda:N, got {device!r}")
        with torch.inference_mode(mode=False):
            found = load_learned(path, choose_device(device))
        learner = found.learner if isinstance(found.learner, Learner) else None
        size, channels = found.configuration["size"], found.configuration["channels"]
        return cls(found.backbone, size, channels, found.method, learner, read_temperatures(path))

    def blocks(self, pictures: Pictures, name: str, change: Callable[[Tensor], Tensor] = to_unit) -> Iterator[Features]:
        """Yield features (b, m) of images, a block of them at a time."""
        for block in packed_blocks(pictures, name, size=self.size, channels=self.channels):
            with nullcontext() if self.learner is None else self._alone:
                features = extract_features(self.backbone, block, np.arange(len(block)), change)
            yield features

    def seen(self, pictures: Pictures, name: str) -> Iterator[Features]:
        """Yield what the method's rule needs (b, ...) of images, a block of them at a time."""
        learner = self._with_rule()
        for block in packed_blocks(pictures, name, size=self.size, channels=self.channels):
            yield np.concatenate([found for _, found in feature_batches(learner, block, np.arange(len(block)))])

    def by_rule(self, support: Features, targets: Ints, queries: Features, ways: int) -> Floats:
        """Return logits by the method's own rule.

        Parameters
        ----------
        support, queries : float32 (n, ...), (q, ...)
            Results of `seen`.
        targets : int64 (n,)
            0 to ways - 1.
        ways : int

        Returns
        -------
        float64 (q, ways)

        Raises
        ------
        MelaError
            They cannot be computed, or are not finite.
        """
        learner = self._with_rule()
        device = next(learner.parameters()).device
        # image after image through the network, or vectors that are there
        count = IMAGES if queries.shape[1:] == (self.channels, self.size, self.size) else BYTES // queries[0].nbytes
        try:
            with self._alone, torch.inference_mode(mode=False), torch.no_grad():
                own, labels = torch.from_numpy(support)[None].to(device), torch.from_numpy(targets)[None].to(device)
                parts = [
                    learner.checked_logits(own, labels, part[None].to(device), ways)[0]
                    for part in torch.from_numpy(queries).split(max(1, count))
                ]
                logits: Floats = torch.cat(parts).double().cpu().numpy()
        except (UnsolvableError, torch.linalg.LinAlgError) as error:  # type: ignore[attr-defined]
            raise MelaError(
                f"support images: the rule of {self.method} failed: {error}; set head to 'logistic', or train the "
                "model again"
            ) from None
        if not np.isfinite(logits).all():
            raise MelaError(
                f"model: expected finite logits by the rule of {self.method}, got NaN or infinity; set head to "
                "'logistic', or train the model again"
            )
        return logits

    def _with_rule(self) -> Learner:
        if self.learner is None:
            raise ValueError("model: its method has no rule of its own; set head to 'logistic'")
        return self.learner

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, which cannot be pickled."""
        return {name: value for name, value in self.__dict__.items() if name != "_alone"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state with a new lock."""
        self.__dict__.update(state, _alone=Lock())
