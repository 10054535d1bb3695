"""Features of all training images under the initial embedding."""

from pathlib import Path

from mela import store
from mela.checked import read_manifest
from mela.episodes import Episodes
from mela.extraction import feature_batches
from mela.models import load_model
from mela.params import PARAMS, RuntimeParams
from stages import paths
from stages.processes import computing, run_shared


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    model: Path = paths.INITIAL,
    features: Path = paths.FEATURES,
) -> None:
    """Read images, training tasks and the initial embedding; write one feature vector per image of a training task."""
    packed = store.open_images(images)
    image_ids = Episodes(read_manifest(train)).image_ids()
    with computing(RuntimeParams.read(params)) as (device, compute):
        backbone = load_model(model, device, packed)
        extracted = feature_batches(backbone, packed, image_ids, team=compute.team)
        if compute.team.leads:
            store.write_features(features, extracted, backbone.dimensions, stage="extract", params={})
            print(f"extract: {len(image_ids)} images, {backbone.dimensions} dimensions")
        else:
            # the work without the result, which only the first process gets
            for _ in extracted:
                pass


if __name__ == "__main__":
    run_shared(main)
