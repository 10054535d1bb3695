"""Meta-test: the initial and the final embedding on the same frozen tasks."""

from pathlib import Path

import pandas as pd

from mela import store
from mela.atomic import together
from mela.augmentation import Augmentation
from mela.calibration import QueryLogits, calibrations
from mela.checked import read_manifest
from mela.device import choose_device
from mela.episodes import Episodes
from mela.evaluation import evaluate_model, require_unseen, summarize
from mela.models import load_model
from mela.output import log
from mela.params import PARAMS, AugmentParams, EvaluateParams, PretrainParams, RuntimeParams
from mela.temperatures import write_temperatures
from mela.watching import watched
from stages import paths
from stages.run import run


def main(
    params: Path = PARAMS,
    images: Path = paths.IMAGES,
    train: Path = paths.TRAIN,
    val: Path = paths.VAL,
    test: Path = paths.TEST,
    initial: Path = paths.INITIAL,
    final: Path = paths.FINAL,
    metrics: Path = paths.EVALUATE_METRICS,
    per_task: Path = paths.PER_TASK,
    temperatures: Path = paths.TEMPERATURES,
) -> None:
    """Read images, both models and all tasks; write accuracies, and temperatures that make probabilities true."""
    settings, files = EvaluateParams.read(params), {"initial": initial, "mela": final}
    device = choose_device(RuntimeParams.read(params).device)
    packed = store.open_images(images)
    models = {name: load_model(path, device, packed) for name, path in files.items()}
    augmentation = Augmentation(**AugmentParams.read(params).model_dump())
    training, rows = Episodes(read_manifest(train)), []
    logits = {(name, split): QueryLogits() for name in models for split in ("test", "val")}
    for split, path in {"test": test, "val": val}.items():
        tasks = Episodes(read_manifest(path))
        require_unseen(tasks, training, str(path))
        for name, model in models.items():
            with watched(f"evaluate: {split}: {name}", "images") as watch:
                accuracies = evaluate_model(
                    model,
                    packed,
                    tasks,
                    shots=settings.shots,
                    C=settings.C,
                    max_iter=settings.max_iter,
                    solver=settings.solver,
                    copies=settings.support_copies,
                    augmentation=augmentation,
                    seed=settings.seed,
                    watch=watch,
                    keep=logits[name, split].keep,
                )
            rows.append(accuracies.assign(split=split, model=name))
            log.info(f"evaluate: {split}: {name}: {len(tasks)} tasks")
    table = pd.concat(rows, ignore_index=True)
    summary = summarize(table[table["split"] == "test"])
    summary["validation"] = summarize(table[table["split"] == "val"])
    for setting in {f"{shots}_shot" for shots in settings.shots} - set(summary["tasks"]):
        log.info(f"evaluate: {setting}: not measured, since fewer than two test tasks have that many support images")
    # validation tasks choose nothing but the temperatures, which test tasks judge
    fitted = {name: calibrations(logits[name, "val"], logits[name, "test"], settings.shots) for name in models}
    summary |= {"calibration": fitted, "labels": PretrainParams.read(params).labels}
    with together():
        store.write_table(per_task, table, store.ACCURACIES, stage="evaluate", params=settings.model_dump(mode="json"))
        store.write_json(metrics, summary)
        write_temperatures(temperatures, {files[name]: found for name, found in fitted.items()}, C=settings.C)


if __name__ == "__main__":
    run(main)
