"""Some of the inferred classes in two dimensions, before and after pre-training."""

from pathlib import Path

from mela.io import store
from mela.io.checked_tables import read_labels
from mela.models.features import extract_features
from mela.models.files import load_model
from mela.params import PARAMS, ReportParams, RuntimeParams
from mela.reporting.class_map import draw_points, neighbourhoods
from mela.runtime.console import log
from mela.runtime.device import choose_device
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    labels: Path = paths.MELA_LABELS,
    initial: Path = paths.INITIAL,
    final: Path = paths.FINAL,
    points: Path = paths.MAP,
) -> None:
    """Read images, inferred labels and both embeddings; write where some images of some classes lie in each."""
    settings = ReportParams.read(params)
    device = choose_device(RuntimeParams.read(params).device)
    packed = store.open_images(images)
    drawn = draw_points(
        read_labels(labels),
        classes=settings.map_classes,
        images=settings.map_images,
        seed=settings.seed,
    )
    for name, path in {"before": initial, "after": final}.items():
        features = extract_features(load_model(path, device, packed), packed, drawn["image_id"].to_numpy())
        drawn[[f"{name}_x", f"{name}_y"]] = neighbourhoods(features, seed=settings.seed)
    store.write_csv(points, drawn)
    log.info(f"map: {len(drawn)} images of {drawn['label'].nunique()} classes")


if __name__ == "__main__":
    run(main)
