"""Wrong labels inside tasks, as the study makes them and counts what is found."""

import numpy as np
import pandas as pd
import pytest

from studies.labels.swapped_labels import GLYPHS, LOOK, cell_of, mixed, scores


def manifest(ways: int) -> pd.DataFrame:
    labels = np.tile(np.arange(ways).repeat(50), 20)
    return pd.DataFrame({"task_id": np.arange(20).repeat(50 * ways), "local_label": labels})


@pytest.mark.parametrize("ways", [2, 5])
def test_a_share_of_the_images_gets_another_label_of_its_task(ways: int) -> None:
    right = manifest(ways)
    given = mixed(right, 0.2, np.random.default_rng(0))
    changed = given["local_label"] != right["local_label"]
    assert changed.mean() == pytest.approx(0.2, abs=0.02)
    assert given["local_label"].between(0, ways - 1).all()
    # no label of the task comes more often than others
    steps = (given["local_label"] - right["local_label"])[changed] % ways
    assert steps.value_counts(normalize=True).to_numpy() == pytest.approx(1 / (ways - 1), abs=0.1)
    assert given["task_id"].equals(right["task_id"])
    pd.testing.assert_frame_equal(mixed(right, 0.0, np.random.default_rng(0)), right)


def test_what_is_found_is_counted() -> None:
    wrong = np.array([True, True, False, False, False])
    found = np.array([0.9, 0.4, 0.8, 0.1, 0.0])
    told = scores(found, wrong)
    assert told == {"told": pytest.approx(44), "named": 40, "right": 50, "found": 50, "auroc": pytest.approx(5 / 6)}
    nothing = scores(found, np.zeros(5, dtype=np.bool_))
    assert (nothing["right"], nothing["found"], nothing["auroc"]) == (0, None, None)


def test_photographs_have_looks() -> None:
    assert cell_of({"data": "cifar_fs_people", "look": 0.0, "wrong": 0.1})["look"] == LOOK
    assert cell_of({"data": GLYPHS, "look": 0.0, "wrong": 0.1})["look"] == 0
