"""What is free at test time is measured on validation tasks, and is what the stage does where both can be compared."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from mela.data.augmentation import NONE
from mela.data.episodes import Episodes
from mela.evaluation.accuracy import evaluate_model
from mela.io import schemas, store
from mela.models.features import extract_features
from mela.models.files import load_model
from mela.params import EvaluateParams
from stages.common import paths
from studies.training import at_test_time


@pytest.mark.slow
def test_features_and_copies_are_compared_on_validation_tasks(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "glyphs_0").symlink_to(finished)
    monkeypatch.setattr(at_test_time, "TASKS", 8)
    monkeypatch.setattr(at_test_time, "COPIES", (1, 3))
    seen: list[Episodes] = []
    evaluate = at_test_time.evaluate_tasks

    def told(lookup: object, tasks: Episodes, **how: object) -> pd.DataFrame:
        seen.append(tasks)
        return evaluate(lookup, tasks, **how)

    monkeypatch.setattr(at_test_time, "evaluate_tasks", told)
    found = at_test_time.measure(data="glyphs", labels="oracle", projects=tmp_path)
    assert [(row["centred"], row["copies"]) for row in found] == [("no", 1), ("no", 3), ("yes", 1), ("yes", 3)]
    assert len({row["5_shot"] for row in found}) > 2
    tasks = seen[0]
    assert len(tasks) == 8
    index = store.read_table(finished / paths.INDEX, schemas.INDEX).set_index("image_id")["split"]
    assert set(index[tasks.image_ids()]) == {"val"}

    images = store.open_images(finished / paths.IMAGES)
    backbone = load_model(finished / paths.ORACLE, torch.device("cpu"), images)
    head = EvaluateParams.read(finished / "params.yaml").model_dump(exclude={"support_copies"})

    def by_stage() -> "pd.Series[float]":
        rows = evaluate_model(backbone, images, tasks, **head, copies=1, augmentation=NONE)
        return rows.groupby("setting")["accuracy"].mean()

    assert found[0]["5_shot"] == pytest.approx(by_stage()["5_shot"])
    truth = store.read_table(finished / paths.TRUTH, schemas.TRUTH).set_index("image_id")["class"]
    training = index[index == "train"].index.to_numpy()
    features = extract_features(backbone, images, training)
    classes = truth[training].to_numpy()
    centre = np.mean([features[classes == name].mean(axis=0) for name in np.unique(classes)], axis=0)
    monkeypatch.setattr(
        type(backbone), "forward", lambda own, batch: own.body(own.normalized(batch)) - torch.from_numpy(centre)
    )
    assert found[2]["5_shot"] == pytest.approx(by_stage()["5_shot"])
