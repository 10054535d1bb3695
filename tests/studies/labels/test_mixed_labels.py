"""Labels of tasks of several data sets, scored in all and within each."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from mela.io import schemas, store
from mela.io.checked_tables import read_truth
from stages.common import paths
from studies.labels.mixed_labels import joined, measure, once, rows

CLASSES = np.array(["birds/a", "birds/a", "birds/b", "birds/b", "coins/c", "coins/c", "coins/d"])
DATASETS = np.array([name.split("/")[0] for name in CLASSES])


def test_each_data_set_is_scored_alone() -> None:
    perfect = np.array([3, 3, 0, 0, 1, 1, 2])
    for row, (name, count, true) in zip(
        rows(CLASSES, DATASETS, perfect), [("all", 7, 4), ("birds", 4, 2), ("coins", 3, 2)], strict=True
    ):
        assert (row["dataset"], row["task_classes"], row["true"], row["clusters"]) == (name, count, true, true)
        assert (row["ari"], row["accuracy"], row["clustered"], row["joined"]) == (1, 100, 100, "")
    # both birds are one, a coin is left out
    whole, birds, coins = rows(CLASSES, DATASETS, np.array([0, 0, 0, 0, 1, 1, -1]))
    assert (birds["ari"], birds["accuracy"], birds["clusters"]) == (0, 50, 1)
    assert birds["joined"] == whole["joined"] == "birds/a = birds/b (4)"
    assert (coins["ari"], coins["joined"]) == (1, "")
    assert coins["clustered"] == pytest.approx(200 / 3)
    # what is joined across data sets counts in all alone
    whole, birds, coins = rows(CLASSES, DATASETS, np.array([0, 0, 1, 1, 0, 0, 2]))
    assert birds["ari"] == coins["ari"] == 1 > whole["ari"]


def test_pairs_are_named_by_how_often_they_are_joined() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1, 1])
    assert joined(CLASSES, labels, 2) == "birds/a = birds/b (2); birds/b = coins/c (2)"


@pytest.mark.slow
def test_labels_of_a_run_are_scored(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "two_0"
    shutil.copytree(finished, run)
    known = read_truth(run / paths.TRUTH)
    known["dataset"] = np.where(known["class"].rank(method="dense") % 2 == 0, "one", "two")
    store.write_table(run / paths.TRUTH, known, schemas.TRUTH_OF_DATASETS, stage="images", params={})
    drawn = once(run, known)
    assert drawn["image_id"].is_unique
    for tasks in ("repl", "once"):
        found = measure(data="two", seed=0, tasks=tasks, labeler="pruned q=6.5", projects=tmp_path)
        assert next(row["dataset"] for row in found) == "all"
        assert found[0]["task_classes"] == sum(row["task_classes"] for row in found[1:])
        assert {(row["tasks"], row["labeler"]) for row in found} == {(tasks, "pruned q=6.5")}
    assert found[0]["task_classes"] == 5 * drawn["task_id"].nunique()
