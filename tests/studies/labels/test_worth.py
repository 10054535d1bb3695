"""What labels of a run are worth, against its true labels."""

from pathlib import Path

import pandas as pd
import pytest

from mela.io import schemas, store
from mela.runtime.usage import FOLDER as USAGE
from stages.common import paths
from studies.labels import worth

WORTH = ("initial", "pruned", "oracle")


def test_accuracies_of_a_run_are_paired_with_those_of_true_labels(tmp_path: Path) -> None:
    run = tmp_path / "glyphs"
    accuracies = {"initial": [10.0, 30.0], "merged": [0.0, 1.0], "pruned": [50.0, 70.0], "oracle": [56.0, 72.0]}
    rows = [
        {"task_id": task, "setting": "1_shot", "accuracy": value, "split": split, "model": model}
        for model, values in accuracies.items()
        for split, task, value in [*(("test", *one) for one in enumerate(values)), ("val", 0, 99.0)]
    ]
    (run / paths.PER_TASK).parent.mkdir(parents=True)
    store.write_table(run / paths.PER_TASK, pd.DataFrame(rows), schemas.ACCURACIES, stage="evaluate", params={})
    (run / paths.LABELS).mkdir(parents=True)
    for path, known in {paths.PRUNED_LABELS: [0, 1, 2, 2, 1, 0], paths.ORACLE_LABELS: range(6)}.items():
        labels = pd.DataFrame({"image_id": range(6), "label": known})
        store.write_table(run / path, labels, schemas.LABELS, stage="label", params={})
    found = {labels: worth.of_a_run(data="glyphs", labels=labels, projects=tmp_path) for labels in WORTH}
    assert [found[labels]["1_shot"] for labels in WORTH] == [20, 60, 64]
    assert [found[labels].get("1_shot_less_oracle") for labels in WORTH] == [-44, -4, None]
    assert [found[labels].get("classes") for labels in WORTH] == [None, 3, 6]
    assert found["pruned"]["1_shot_less_oracle_ci95"] == pytest.approx(12.706 * 2, abs=1e-3)
    assert "minutes" not in found["oracle"]
    run.rename(tmp_path / "glyphs_3")
    store.write_json(tmp_path / "glyphs_3" / USAGE / "pretrain@oracle.json", {"seconds": 90.0})
    seeded = worth.of_a_run(data="glyphs", seed=3, labels="oracle", projects=tmp_path)
    assert seeded == {**found["oracle"], "minutes": 1.5}


def test_accuracies_of_a_run_are_told_by_data_set(tmp_path: Path) -> None:
    run = tmp_path / "birds-coins_0"
    accuracies = {"initial": [10.0, 20.0, 30.0, 50.0], "oracle": [56.0, 72.0, 60.0, 60.0]}
    rows = [
        {"task_id": task, "setting": "1_shot", "accuracy": value, "split": "test", "model": model}
        for model, values in accuracies.items()
        for task, value in enumerate(values)
    ]
    for folder in (paths.PER_TASK.parent, paths.LABELS, paths.TEST.parent):
        (run / folder).mkdir(parents=True)
    store.write_table(run / paths.PER_TASK, pd.DataFrame(rows), schemas.ACCURACIES, stage="evaluate", params={})
    labels = pd.DataFrame({"image_id": range(3), "label": range(3)})
    store.write_table(run / paths.ORACLE_LABELS, labels, schemas.LABELS, stage="label", params={})
    store.write_json(run / paths.SCORES, {})
    test = pd.DataFrame(
        [
            (task, 4 * task + 2 * label + (role == "query"), label, role, "coins" if task in (1, 3) else "birds")
            for task in range(4)
            for label in (0, 1)
            for role in ("support", "query")
        ],
        columns=schemas.MANIFEST_OF_DATASETS.names,
    )
    store.write_table(run / paths.TEST, test, schemas.MANIFEST_OF_DATASETS, stage="manifest", params={})
    found = worth.of_a_mixed_run(data="birds-coins", labels="initial", projects=tmp_path, seed=0)
    assert [row["dataset"] for row in found] == ["all", "birds", "coins"]
    assert [row["n"] for row in found] == [4, 2, 2]
    assert [row["1_shot"] for row in found] == [27.5, 20, 35]
    assert [row["1_shot_less_oracle"] for row in found] == [-34.5, -38, -31]
    true = worth.of_a_mixed_run(data="birds-coins", labels="oracle", projects=tmp_path, seed=0)
    assert [row["1_shot"] for row in true] == [62, 58, 66]
    assert true[0]["classes"] == 3


@pytest.mark.slow
def test_a_run_tells_how_many_images_each_training_saw(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "glyphs").symlink_to(finished)
    found = {labels: worth.of_a_run(data="glyphs", labels=labels, projects=tmp_path) for labels in WORTH}
    # twice 20 tasks of 100 images, and twice all labelled images
    assert found["initial"]["images"] == 4000
    labelled = len(store.read_table(finished / paths.PRUNED_LABELS, schemas.LABELS))
    assert found["pruned"]["images"] == 2 * labelled
