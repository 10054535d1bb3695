"""Name the files of rounds of training."""

from pathlib import Path
from typing import NamedTuple

from mela.labeling.training_samples import features_in, looks_in
from stages.common import paths


class RoundFiles(NamedTuple):
    """Name where features, looks (`mela.models.looks`) and embedding of a round are.

    Looks of the initial embedding, before all rounds, are not measured.
    """

    features: Path
    model: Path
    looks: Path | None = None


BEFORE_ROUNDS = RoundFiles(paths.FEATURES, paths.INITIAL)


def round_files(number: str) -> RoundFiles:
    """Return all files of a round, which is named as in the block `rounds`."""
    folder = paths.ROUND_FEATURES / number
    return RoundFiles(features_in(folder), paths.ROUND_MODELS / f"{number}.safetensors", looks_in(folder))
