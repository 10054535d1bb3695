"""Tasks whose labels are fine and coarse classes: how they are drawn, and their true shares."""

import numpy as np
import pandas as pd

from studies.labels.mixed_levels import concepts, draw_mixed_tasks, level_targets

ABOVE = {"ant": "insects", "bee": "insects", "cod": "fish", "eel": "fish"}
ABOVE |= {"fox": "beasts", "gnu": "herds", "oak": "trees", "yew": "trees"}
TRUTH = pd.DataFrame({"image_id": range(400), "class": np.repeat([*ABOVE], 50)})


def test_tasks_of_mixed_levels_share_no_image_and_no_fine_class() -> None:
    members = concepts(TRUTH, ABOVE)
    assert sorted(members) == ["ant", "bee", "cod", "eel", "fish", "fox", "gnu", "insects", "oak", "trees", "yew"]
    tasks = draw_mixed_tasks(TRUTH, ABOVE, n_tasks=300, ways=3, shots=2, queries=3, seed=0)
    assert (tasks.groupby(["task_id", "local_label"]).size() == 5).all()
    assert not tasks.duplicated(["task_id", "image_id"]).any()
    known = tasks.merge(TRUTH, on="image_id")
    assert all(fine in members[concept] for fine, concept in zip(known["class"], known["concept"], strict=True))
    assert (known.groupby(["task_id", "class"])["concept"].nunique() == 1).all(), "a class under two names in a task"
    share = tasks.drop_duplicates(["task_id", "local_label"])["concept"].isin(["fish", "insects", "trees"]).mean()
    assert 0.45 < share < 0.55, "the levels should be about as frequent"
    again = draw_mixed_tasks(TRUTH, ABOVE, n_tasks=2, ways=3, shots=2, queries=3, seed=0)
    pd.testing.assert_frame_equal(again, tasks[tasks["task_id"] < 2])


def test_shares_of_true_concepts() -> None:
    tasks = pd.DataFrame({"image_id": [3, 3, 3, 3, 5], "concept": ["oak", "trees", "oak", "oak", "trees"]})
    targets = level_targets(tasks)
    assert targets.image_ids.tolist() == [3, 5]
    assert targets.batch(np.array([0, 1])).tolist() == [[0.75, 0.25], [0, 1]]
