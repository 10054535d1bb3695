"""Name the files of rounds of training, or pass on what the one before has made."""

from pathlib import Path
from typing import NamedTuple

from mela.io.atomic import together
from mela.io.look_files import write_looks
from mela.labeling.training_samples import features_in, looks_in
from mela.params import ROUNDS, RoundName
from stages.common import paths
from stages.common.embedding_files import Trained
from stages.common.run import is_first


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


def before_round(number: RoundName) -> RoundFiles:
    """Return all files of the round before, or of none for the first."""
    place = ROUNDS.index(number)
    return round_files(ROUNDS[place - 1]) if place else BEFORE_ROUNDS


def round_trained(number: str) -> Trained:
    """Return the files of the embedding that a round trains."""
    return Trained(
        model=round_files(number).model,
        metrics=paths.ROUNDS / f"{number}.json",
        curve=paths.ROUNDS / f"{number}.csv",
    )


def pass_on(number: str, before: RoundFiles) -> None:
    """Write copies of the files of the round before as those of this one, in the first of several processes.

    Looks that are not there are empty.
    """
    if not is_first():
        return
    own, looks = round_files(number), looks_in(paths.ROUND_FEATURES / number)
    copies = {before.features: own.features, before.model: own.model}
    with together():
        if before.looks is None:
            write_looks(looks, None)
        else:
            copies[before.looks] = looks
        round_trained(number).pass_on(copies)
