"""Train an embedding on the labels that are known so far, in which people's looks count less than in the one before."""

import os
import shutil
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from mela.data.array_types import Ints
from mela.data.episodes import Episodes
from mela.errors import MelaError
from mela.io import feature_tables, store
from mela.io.atomic import replacing, together
from mela.io.checked_tables import read_manifest
from mela.labeling.task_classes import TaskSamples, manifest_samples
from mela.models.features import feature_batches
from mela.models.files import configure
from mela.params import PARAMS, ROUNDS, ExtractParams, MergingParams, ModelParams, RoundsParams
from mela.runtime.console import log
from mela.training.checkpoint import steady
from mela.training.loop import curve_table
from mela.training.targets import Targets
from stages.common import paths
from stages.common.pretraining import pretrain_on
from stages.common.processes import run_shared
from stages.common.trained import Trained


def main(
    number: Annotated[str, typer.Argument(help="Which: first, second or third.")],
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    weights: Path = paths.WEIGHTS,
) -> None:
    """Read images, and features and embedding of the round before; write those of this one, or the same if it is off.

    The first round tells all task classes apart. Each other one learns the classes that merging finds by the features
    of the round before.
    """
    settings, model_settings, merging = RoundsParams.read(params), ModelParams.read(params), MergingParams.read(params)
    given, stage, place = ExtractParams.read(params).features, f"round@{number}", ROUNDS.index(number)
    before, model = paths.round_files(ROUNDS[place - 1]) if place else (paths.FEATURES, paths.INITIAL)
    features, trained_model = paths.round_files(number)
    out = Trained(model=trained_model, metrics=paths.ROUNDS / f"{number}.json", curve=paths.ROUNDS / f"{number}.csv")
    if not getattr(settings, number):
        _pass_on({before: features, model: trained_model}, out)
        log.info(f"{stage}: off, so that features stay as they are")
        return
    if given != "none":
        raise MelaError(
            f"rounds.{number}: rounds replace the features of the embedding, but extract.features gives others; set "
            "one of them to false or none"
        )
    with steady(images, train, before) as inputs:
        packed, manifest = store.open_images(images), read_manifest(train)
        known, vectors = feature_tables.read_features(before)
        samples = manifest_samples(manifest, known, vectors)
        configuration = configure(model_settings, packed, Episodes(manifest).image_ids())
    labels, told = _merged(samples, merging) if place else _task_classes(samples)
    targets = _targets(samples, labels, known)
    log.info(f"{stage}: {told['clusters']} classes of {len(targets.image_ids)} images")
    found = pretrain_on(targets, stage, params, packed, configuration, inputs, images=images, weights=weights)
    if not found.compute.team.leads:
        return
    batches = feature_batches(found.backbone, packed, known)
    told |= {"loss": found.epochs[-1].loss, "precision": found.precision}
    with together():
        feature_tables.write_features(features, batches, found.backbone.dimensions, stage="round", params={})
        out.write(found.backbone, configuration, told, curve_table(found.epochs))
    found.remove()


def _task_classes(samples: TaskSamples) -> tuple[Ints, dict[str, Any]]:
    """Return each task class as a label of its own, and what is told of it."""
    count = int(samples.classes.max()) + 1
    return np.arange(count), {"clusters": count}


def _merged(samples: TaskSamples, settings: MergingParams) -> tuple[Ints, dict[str, Any]]:
    """Return the labels (n_task_classes,) that merging finds, and what is told of them."""
    # takes a second, which a wrong parameter need not wait for
    from mela.labeling.diagnostics import label_metrics
    from mela.labeling.merge_labeler import MergeLabeler

    labeler = MergeLabeler(**settings.model_dump(exclude={"seed"}), random_state=settings.seed).fit_tasks(samples)
    told = {"clusters": len(labeler.cluster_centers_), "match": labeler.pair_quality_.match}
    return labeler.class_labels_, told | label_metrics(labeler)


def _targets(samples: TaskSamples, labels: Ints, image_ids: Ints) -> Targets:
    from mela.labeling.image_labels import label_images

    flat = label_images(labels, int(labels.max()) + 1, image_ids[samples.index], samples.classes)
    return Targets(image_ids=flat.image_ids, labels=flat.labels)


def _pass_on(files: dict[Path, Path], out: Trained) -> None:
    """Copy features and embedding of the round before in the first of several processes; figures are empty."""
    if os.environ.get("RANK", "0") != "0":
        return
    with together():
        for source, copy in files.items():
            with replacing(copy) as path:
                shutil.copyfile(source, path)
        out.write_no_figures()


if __name__ == "__main__":
    run_shared(main)
