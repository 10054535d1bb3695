"""Meta-test the initial embedding and all pre-trained ones on the same frozen tasks."""

from pathlib import Path

import pandas as pd

from mela.data.augmentation import Augmentation
from mela.data.episodes import Episodes
from mela.evaluation.accuracy import evaluate_model, require_unseen, summarize
from mela.evaluation.calibration import QueryOutputs, calibrations
from mela.evaluation.confusions import predicted_labels
from mela.evaluation.temperature_files import write_temperatures
from mela.io import atomic, store
from mela.io.checked_tables import read_manifest
from mela.io.schemas import ACCURACIES, PREDICTIONS
from mela.models.files import is_trained, load_model
from mela.params import PARAMS, AugmentParams, EvaluateParams, RuntimeParams
from mela.runtime.console import log
from mela.runtime.device import choose_device
from mela.runtime.progress import watched
from stages.common import paths
from stages.common.run import run


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    val: Path = paths.VAL,
    test: Path = paths.TEST,
    initial: Path = paths.INITIAL,
    merged: Path = paths.MERGED,
    merged_soft: Path = paths.MERGED_SOFTLY,
    pruned: Path = paths.PRUNED,
    kmeans: Path = paths.KMEANS,
    oracle: Path = paths.ORACLE,
    metrics: Path = paths.EVALUATE_METRICS,
    per_task: Path = paths.PER_TASK,
    predictions: Path = paths.PREDICTIONS,
    temperatures: Path = paths.TEMPERATURES,
) -> None:
    """Read images, all models and tasks; write accuracies, what was predicted, and temperatures for probabilities."""
    settings, trained = EvaluateParams.read(params), (merged, merged_soft, pruned, kmeans, oracle)
    files = {"initial": initial} | {path.stem: path for path in trained if is_trained(path)}
    device, packed = choose_device(RuntimeParams.read(params).device), store.open_images(images)
    models = {name: load_model(path, device, packed) for name, path in files.items()}
    how = settings.model_dump(exclude={"support_copies"}) | {"copies": settings.support_copies}
    how["augmentation"], rows = Augmentation(**AugmentParams.read(params).model_dump()), []
    training = Episodes(read_manifest(train))
    outputs = {(name, split): QueryOutputs() for name in models for split in ("test", "val")}
    manifests = {path: read_manifest(path) for path in (test, val)}
    for split, path in {"test": test, "val": val}.items():
        tasks = Episodes(manifests[path])
        require_unseen(tasks, training, str(path))
        log.info(f"evaluate: {split}: {len(tasks)} tasks, {len(models)} embeddings")
        for name, model in models.items():
            with watched(f"evaluate: {split}: {name}", "images") as watch:
                accuracies = evaluate_model(model, packed, tasks, **how, watch=watch, keep=outputs[name, split].keep)
            rows.append(accuracies.assign(split=split, model=name))
    table = pd.concat(rows, ignore_index=True)
    summary = summarize(table[table["split"] == "test"], manifests[test])
    for setting in {f"{shots}_shot" for shots in settings.shots} - set(summary["tasks"]):
        log.info(f"evaluate: {setting}: not measured, since fewer than two test tasks have that many support images")
    # validation tasks choose nothing but temperatures and thresholds, which test tasks judge
    fitted = {name: calibrations(outputs[name, "val"], outputs[name, "test"], settings.shots) for name in models}
    summary |= {"validation": summarize(table[table["split"] == "val"]), "calibration": fitted}
    task_ids = Episodes(manifests[test]).task_ids
    predicted = [predicted_labels(name, outputs[name, "test"], settings.shots, task_ids) for name in models]
    with atomic.together():
        store.write_table(predictions, pd.concat(predicted), PREDICTIONS, stage="evaluate", params={})
        store.write_table(per_task, table, ACCURACIES, stage="evaluate", params=settings.model_dump(mode="json"))
        store.write_json(metrics, summary)
        write_temperatures(temperatures, {files[name]: found for name, found in fitted.items()}, C=settings.C)


if __name__ == "__main__":
    run(main)
