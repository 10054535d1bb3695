"""Train an embedding on the labels that are known so far, so that people's looks count less than in the one before."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from mela.errors import MelaError
from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.labeling.training_samples import read_samples
from mela.models.files import configure
from mela.params import PARAMS, ROUNDS, ExtractParams, MergingParams, RoundName, RoundsParams
from mela.runtime.console import log
from mela.training.checkpoint import steady
from mela.training.targets import Targets
from stages.common import paths
from stages.common.pretraining import pretrain_on
from stages.common.pretraining_settings import Settings
from stages.common.processes import run_shared
from stages.common.round_files import BEFORE_ROUNDS, round_files
from stages.common.round_outputs import pass_on, write_round


def main(
    number: Annotated[RoundName, typer.Argument(help="Which.")],
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    weights: Path = paths.WEIGHTS,
    sources: Path = paths.TASK_SOURCES,
) -> None:
    """Read images, and features, looks and embedding of the round before; write those of this one, or the same if off.

    The first round tells all task classes apart. Each other one learns the classes that merging finds by the features
    of the round before.
    """
    switches, merging = RoundsParams.read(params), MergingParams.read(params)
    stage, place = f"round@{number}", ROUNDS.index(number)
    before = round_files(ROUNDS[place - 1]) if place else BEFORE_ROUNDS
    given, settings = ExtractParams.read(params).features, Settings.read(params)
    if not getattr(switches, number):
        pass_on(number, before)
        log.info(f"{stage}: off, so that features stay as they are")
        return
    if given != "none":
        raise MelaError(
            f"rounds.{number}: a round puts features of its own in place of {given} (extract.features); set "
            f"rounds.{number} to false, or extract.features to none"
        )
    # takes a second, which a wrong parameter need not wait for
    from mela.labeling.merge_labeler import MergeLabeler
    from mela.labeling.round_labels import labels_so_far

    labeler = MergeLabeler(**merging.model_dump(exclude={"seed"}), random_state=merging.seed) if place else None
    with steady(images, train, sources, before.features, *filter(None, [before.looks])) as inputs:
        packed = store.open_images(images)
        samples, known = read_samples(read_manifest(train), before.features, before.looks, sources)
        configuration = configure(settings.model, packed, np.unique(known[samples.index]))
    flat, told = labels_so_far(samples, known, labeler)
    log.info(f"{stage}: {told['clusters']} classes of {len(flat.image_ids)} images")
    targets = Targets(image_ids=flat.image_ids, labels=flat.labels)
    found = pretrain_on(targets, stage, settings, packed, configuration, inputs, images=images, weights=weights)
    if found.compute.team.leads:
        seed = settings.pretrain.seed
        write_round(number, found, configuration, told, packed, samples, known, seed=seed)
        found.remove()


if __name__ == "__main__":
    run_shared(main)
