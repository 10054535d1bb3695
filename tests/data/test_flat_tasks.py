"""First shots and groups of tasks, against the tasks one by one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mela.data.episodes import Episodes, FlatTasks


@st.composite
def tasks(draw: st.DrawFn) -> Episodes:
    """A few tasks of any ways, shots and queries, rows in any order."""
    rows = []
    for task in draw(st.lists(st.integers(0, 50), unique=True, max_size=5)):
        for label in range(draw(st.integers(2, 3))):
            roles = ["support"] * draw(st.integers(1, 3)) + ["query"] * draw(st.integers(0, 2))
            rows += [(task, label, role) for role in roles]
    order = draw(st.permutations(range(len(rows))))
    table = pd.DataFrame([rows[i] for i in order], columns=["task_id", "local_label", "role"])
    return Episodes(table.assign(image_id=np.arange(len(table))))


@given(tasks(), st.integers(1, 3))
def test_first_shots_of_each_class_and_all_queries(episodes: Episodes, shots: int) -> None:
    expected = {}
    for position, task in enumerate(episodes):
        support = [np.flatnonzero(task.is_support & (task.labels == label)) for label in range(task.labels.max() + 1)]
        if all(len(rows) >= shots for rows in support):
            first = {int(task.image_ids[i]) for rows in support for i in rows[:shots]}
            expected[position] = first | set(task.image_ids[~task.is_support].tolist())
    flat = FlatTasks.of(episodes).first_shots(shots)
    found = {p: set(flat.image_ids[flat.position == p].tolist()) for p in np.unique(flat.position).tolist()}
    assert found == expected


@given(tasks())
def test_groups_are_the_tasks(episodes: Episodes) -> None:
    groups = FlatTasks.of(episodes).groups()
    positions = [position for group in groups for position in group.positions.tolist()]
    assert sorted(positions) == list(range(len(episodes)))
    shapes = [(group.ways, group.support.shape[1], group.query.shape[1]) for group in groups]
    assert len(set(shapes)) == len(shapes)
    for group in groups:
        for i, position in enumerate(group.positions):
            task = episodes[position]
            assert group.ways == task.labels.max() + 1
            assert group.support[i].tolist() == task.image_ids[task.is_support].tolist()
            assert group.support_labels[i].tolist() == task.labels[task.is_support].tolist()
            assert group.query[i].tolist() == task.image_ids[~task.is_support].tolist()
            assert group.query_labels[i].tolist() == task.labels[~task.is_support].tolist()


@given(tasks())
def test_shots_of_every_class(episodes: Episodes) -> None:
    expected = [count for task in episodes for count in np.bincount(task.labels[task.is_support]).tolist()]
    assert FlatTasks.of(episodes).shots().tolist() == expected


@pytest.mark.parametrize("part", [slice(1, 2), slice(0, 0), slice(None)])
def test_part_of_a_group(part: slice) -> None:
    rows = [(task, label, role) for task in range(3) for label in range(2) for role in ("support", "query", "query")]
    table = pd.DataFrame(rows, columns=["task_id", "local_label", "role"])
    (group,) = FlatTasks.of(Episodes(table.assign(image_id=np.arange(len(table))))).groups()
    some = group[part]
    assert len(some) == len(group.positions[part])
    assert some.query.tolist() == group.query[part].tolist()
    assert some.support_labels.tolist() == group.support_labels[part].tolist()
