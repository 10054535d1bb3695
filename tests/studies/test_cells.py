"""Tasks of classes that are not equally frequent."""

import numpy as np
import pandas as pd
import pytest

from mela.params import TaskParams
from studies.cells import draw_uneven

CLASSES, EACH = 12, 30
IMAGES = pd.DataFrame({"image_id": np.arange(CLASSES * EACH), "class": np.repeat(np.arange(CLASSES), EACH)})


def settings(tasks: int, seed: int = 0) -> TaskParams:
    """Return tasks of 2 ways, 3 support and 4 query images of a class."""
    shape = {"ways": 2, "shots": 3, "queries": 4, "replacement": True}
    return TaskParams.model_validate({**shape, "train": tasks, "val": 1, "test": 1, "seed": seed})


def classes(drawn: pd.DataFrame) -> pd.Series:
    """Return the class of each task class, in a series by task_id and local label."""
    known = drawn.merge(IMAGES, on="image_id", validate="many_to_one")
    assert len(known) == len(drawn)
    groups = known.groupby(["task_id", "local_label"])["class"]
    assert (groups.nunique() == 1).all()
    return groups.first()


def test_tasks_have_different_classes_and_different_images() -> None:
    drawn = draw_uneven(IMAGES, settings(300), 1.0)
    assert (classes(drawn).groupby("task_id").nunique() == 2).all()
    assert not drawn.duplicated(["task_id", "image_id"]).any()
    counts = drawn.groupby(["task_id", "local_label", "role"]).size().unstack()
    assert (counts["support"] == 3).all()
    assert (counts["query"] == 4).all()
    assert drawn["task_id"].nunique() == 300


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.5])
def test_frequencies_fall_as_a_power_of_the_rank(exponent: float) -> None:
    """A pair without replacement has class i with the chance p_i + sum over j of p_j p_i / (1 - p_j)."""
    n = 5_000
    found = np.sort(np.bincount(classes(draw_uneven(IMAGES, settings(n), exponent)), minlength=CLASSES))[::-1]
    share = np.arange(1, CLASSES + 1.0) ** -exponent
    share /= share.sum()
    others = share / (1 - share)
    chance = share * (1 + others.sum() - others)
    assert (np.abs(found - n * chance) <= 5 * np.sqrt(n * chance * (1 - chance))).all()


def test_the_seed_decides() -> None:
    first, again, other = (draw_uneven(IMAGES, settings(20, seed), 1.0) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_which_class_is_rare_is_drawn_too() -> None:
    """Else the rare classes of every seed would be the same ones."""
    rarest = [int(np.bincount(classes(draw_uneven(IMAGES, settings(500, seed), 1.5))).argmin()) for seed in range(4)]
    assert len(set(rarest)) > 1
