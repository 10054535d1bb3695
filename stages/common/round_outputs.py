"""Write what a round of training makes."""

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
from stages.common.pretraining_settings import Pretrained
from stages.common.round_files import round_files, round_trained


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
