"""Write what a round of training makes, or pass on what the one before it made."""

from typing import Any

from mela.data.array_types import Images, Ints
from mela.data.augmentation import Augmentation
from mela.io import feature_tables
from mela.io.atomic import together
from mela.io.look_files import write_looks
from mela.labeling.task_classes import TaskSamples
from mela.labeling.training_samples import looks_in
from mela.models.features import feature_batches
from mela.models.looks import look_covariance
from mela.training.loop import curve_table
from stages.common import paths
from stages.common.embedding_files import Trained
from stages.common.pretraining_settings import Pretrained
from stages.common.round_files import RoundFiles, round_files
from stages.common.run import is_first


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


def write_round(
    number: str,
    found: Pretrained,
    configuration: dict[str, Any],
    told: dict[str, Any],
    images: Images,
    samples: TaskSamples,
    known: Ints,
    *,
    seed: int,
) -> None:
    """Write the features of all images `known`, looks, embedding and figures of a round.

    Looks are those that training has varied, so kept features have none.
    """
    varied = Augmentation(**found.part.augment.model_dump())
    moved = look_covariance(found.backbone, images, known[samples.index], samples.classes, varied, seed=seed)
    batches = feature_batches(found.backbone, images, known)
    features = round_files(number).features
    figures = told | {"loss": found.epochs[-1].loss, "precision": found.precision}
    with together():
        feature_tables.write_features(features, batches, found.backbone.dimensions, stage="round", params={})
        write_looks(looks_in(paths.ROUND_FEATURES / number), moved)
        round_trained(number).write(found.backbone, configuration, figures, curve_table(found.epochs))
