"""Map some of the inferred classes to two dimensions, before and after pre-training."""

from pathlib import Path

from mela.io import store
from mela.io.checked_tables import read_labels
from mela.models.features import extract_features
from mela.models.files import load_model
from mela.params import PARAMS, ReportParams, RuntimeParams, UseParams
from mela.reporting.class_map import draw_points, neighbourhoods
from mela.runtime.console import log
from mela.runtime.device import choose_device
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    initial: Path = paths.INITIAL,
    points: Path = paths.MAP,
) -> None:
    """Read images, the labels in use, the initial embedding and theirs; write where some images lie in each."""
    settings, used = ReportParams.read(params), UseParams.read(params).labels
    device = choose_device(RuntimeParams.read(params).device)
    packed = store.open_images(images)
    drawn = draw_points(
        read_labels(paths.LABELS / f"{used}.parquet"),
        classes=settings.map_classes,
        images=settings.map_images,
        seed=settings.seed,
    )
    for name, path in {"before": initial, "after": paths.MODELS / f"{used}.safetensors"}.items():
        features = extract_features(load_model(path, device, packed), packed, drawn["image_id"].to_numpy())
        drawn[[f"{name}_x", f"{name}_y"]] = neighbourhoods(features, seed=settings.seed)
    store.write_csv(points, drawn)
    log.info(f"map: {len(drawn)} images of {drawn['label'].nunique()} classes")


if __name__ == "__main__":
    run(main)
