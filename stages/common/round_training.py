"""Train one of the rounds."""

from pathlib import Path

import numpy as np

from mela.errors import MelaError
from mela.io import store
from mela.io.checked_tables import read_manifest
from mela.labeling.merge_labeler import MergeLabeler
from mela.labeling.round_labels import labels_so_far
from mela.labeling.training_samples import read_samples
from mela.models.files import configure
from mela.params import ROUNDS, ExtractParams, MergingParams, RoundName, RoundsParams
from mela.runtime.console import log
from mela.training.checkpoint import steady
from mela.training.targets import Targets
from stages.common.pretraining import pretrain_on
from stages.common.pretraining_settings import Settings
from stages.common.round_files import before_round
from stages.common.round_outputs import write_round


def train_round(
    number: RoundName, params: Path, images: Path, train: Path, weights: Path, sources: Path, names: Path
) -> None:
    """Write the features, looks, embedding and figures of a round that is on.

    Raises
    ------
    MelaError
        Features are given, whose place those of the round would take.
    """
    merging, settings = MergingParams.read(params), Settings.read(params)
    stage, before = f"round@{number}", before_round(number)
    given = ExtractParams.read(params).features
    if given != "none":
        raise MelaError(
            f"rounds.{number}: a round puts features of its own in place of {given} (extract.features); set "
            f"rounds.{number} to false, or extract.features to none"
        )
    first = number == ROUNDS[0]
    labeler = None if first else MergeLabeler(**merging.arguments)
    written = names if merging.names else None
    read = images, train, sources, before.features, *filter(None, [before.looks, written])
    with steady(*read) as inputs:
        packed = store.open_images(images)
        manifest = read_manifest(train)
        samples, known = read_samples(manifest, before.features, before.looks, sources, written)
        configuration = configure(settings.model, packed, np.unique(known[samples.index]))
    flat, told = labels_so_far(samples, known, labeler)
    log.info(f"{stage}: {told['clusters']} classes of {len(flat.image_ids)} images")
    targets = Targets(image_ids=flat.image_ids, labels=flat.labels)
    if getattr(RoundsParams.read(params), number) == "centered":
        targets = targets.of_tasks(manifest)
    found = pretrain_on(targets, stage, settings, packed, configuration, inputs, images=images, weights=weights)
    if found.compute.team.leads:
        seed = settings.pretrain.seed
        write_round(number, found, configuration, told, packed, samples, known, seed=seed)
        found.remove()
