"""Features of all training images under the initial embedding."""

from pathlib import Path

from mela import store
from mela.device import choose_device
from mela.episodes import Episodes
from mela.extraction import feature_batches
from mela.models import load_model
from mela.params import PARAMS, RuntimeParams
from stages import paths
from stages.run import run


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    model: Path = paths.INITIAL,
    features: Path = paths.FEATURES,
) -> None:
    """Read images, training tasks and the initial embedding; write one feature vector per image of a training task."""
    packed = store.open_images(images)
    backbone = load_model(model, choose_device(RuntimeParams.read(params).device), packed)
    image_ids = Episodes(store.read_table(train, store.MANIFEST)).image_ids()
    extracted = feature_batches(backbone, packed, image_ids)
    store.write_features(features, extracted, backbone.dimensions, stage="extract", params={})
    print(f"extract: {len(image_ids)} images, {backbone.dimensions} dimensions")


if __name__ == "__main__":
    run(main)
