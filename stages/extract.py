"""Extract features of all training images by the initial embedding."""

from collections.abc import Iterable
from pathlib import Path

from mela.data.array_types import Features, Ints
from mela.data.episodes import Episodes
from mela.io import feature_tables, store
from mela.io.checked_tables import read_manifest
from mela.labeling.user_tables import given_features
from mela.models.features import feature_batches
from mela.models.files import load_model
from mela.params import PARAMS, ExtractParams, RuntimeParams
from mela.runtime.console import log
from stages.common import paths
from stages.common.computing import computing
from stages.common.processes import run_shared


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    given: Path = paths.GIVEN_FEATURES,
    model: Path = paths.INITIAL,
    features: Path = paths.FEATURES,
) -> None:
    """Read images, training tasks and the initial embedding; write a feature vector per image of a training task."""
    settings = ExtractParams.read(params)
    packed = store.open_images(images)
    image_ids = Episodes(read_manifest(train)).image_ids()
    with computing("extract", "images", RuntimeParams.read(params)) as (device, compute, watch):
        if settings.features != "none":
            if compute.team.leads:
                found = given_features(given / settings.features, image_ids, len(packed))
                _write(features, [(image_ids, found)], len(image_ids), found.shape[1])
            return
        backbone = load_model(model, device, packed)
        extracted = feature_batches(backbone, packed, image_ids, team=compute.team, watch=watch)
        if compute.team.leads:
            _write(features, extracted, len(image_ids), backbone.dimensions)
        else:
            # the work without the result, which only the first process gets
            for _ in extracted:
                pass


def _write(path: Path, batches: Iterable[tuple[Ints, Features]], n_images: int, dimensions: int) -> None:
    feature_tables.write_features(path, batches, dimensions, stage="extract", params={})
    log.info(f"extract: {n_images} images, {dimensions} dimensions")


if __name__ == "__main__":
    run_shared(main)
