"""Tasks of a manifest as arrays; first shots and groups of tasks, against the tasks one by one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mela.data.episodes import Episode, Episodes, FlatTasks

ROWS = [
    (7, 30, 1, "query"),
    (2, 11, 0, "support"),
    (7, 12, 0, "support"),
    (2, 10, 1, "support"),
    (7, 11, 1, "support"),
    (2, 13, 0, "query"),
    (7, 31, 2, "support"),
    (40, 10, 0, "query"),
]
IMAGES = {2: [11, 10, 13], 7: [30, 12, 11, 31], 40: [10]}
LABELS = {2: [0, 1, 0], 7: [1, 0, 1, 2], 40: [0]}
SUPPORT = {2: [True, True, False], 7: [False, True, True, True], 40: [False]}


@pytest.fixture
def episodes() -> Episodes:
    return Episodes(pd.DataFrame(ROWS, columns=["task_id", "image_id", "local_label", "role"]))


def check(episode: Episode, task: int) -> None:
    assert episode.task_id == task
    assert episode.image_ids.tolist() == IMAGES[task]
    assert episode.labels.tolist() == LABELS[task]
    assert episode.is_support.tolist() == SUPPORT[task]
    assert (episode.image_ids.dtype, episode.labels.dtype) == (np.int64, np.int64)


def test_tasks_come_in_the_order_of_their_ids_and_rows_keep_theirs(episodes: Episodes) -> None:
    assert len(episodes) == 3
    assert episodes.task_ids.tolist() == [2, 7, 40]
    for episode, task in zip(episodes, [2, 7, 40], strict=True):
        check(episode, task)


@pytest.mark.parametrize(("index", "task"), [(0, 2), (1, 7), (2, 40), (-1, 40), (-3, 2)])
def test_tasks_by_position(episodes: Episodes, index: int, task: int) -> None:
    check(episodes[index], task)
    check(episodes[np.int64(index)], task)


@pytest.mark.parametrize("index", [3, -4])
def test_no_task_beyond_the_last(episodes: Episodes, index: int) -> None:
    with pytest.raises(IndexError, match=f"expected a position below 3, the number of tasks, got {index}"):
        episodes[index]


@pytest.mark.parametrize(
    ("part", "tasks"),
    [
        (slice(None), [2, 7, 40]),
        (slice(1, None), [7, 40]),
        (slice(None, None, -1), [40, 7, 2]),
        (slice(-2, -1), [7]),
        (slice(5, 9), []),
    ],
)
def test_a_slice_is_a_list_of_tasks(episodes: Episodes, part: slice, tasks: list[int]) -> None:
    found = episodes[part]
    assert isinstance(found, list)
    for episode, task in zip(found, tasks, strict=True):
        check(episode, task)


def test_images_that_occur(episodes: Episodes) -> None:
    assert episodes.image_ids().tolist() == [10, 11, 12, 13, 30, 31]
    assert episodes.support_ids().tolist() == [10, 11, 12, 31]


def test_rows_of_all_tasks(episodes: Episodes) -> None:
    positions, images, labels, support = episodes.rows()
    assert positions.tolist() == [0, 0, 0, 1, 1, 1, 1, 2]
    assert images.tolist() == IMAGES[2] + IMAGES[7] + IMAGES[40]
    assert labels.tolist() == LABELS[2] + LABELS[7] + LABELS[40]
    assert support.tolist() == SUPPORT[2] + SUPPORT[7] + SUPPORT[40]


def test_no_tasks() -> None:
    empty = Episodes(pd.DataFrame(ROWS[:0], columns=["task_id", "image_id", "local_label", "role"]))
    assert (len(empty), list(empty), empty[:]) == (0, [], [])
    assert empty.image_ids().tolist() == []
    with pytest.raises(IndexError, match="got 0"):
        empty[0]


@st.composite
def drawn_tasks(draw: st.DrawFn) -> Episodes:
    """A few tasks of any ways, shots and queries, rows in any order."""
    rows = []
    for task in draw(st.lists(st.integers(0, 50), unique=True, max_size=5)):
        for label in range(draw(st.integers(2, 3))):
            roles = ["support"] * draw(st.integers(1, 3)) + ["query"] * draw(st.integers(0, 2))
            rows += [(task, label, role) for role in roles]
    order = draw(st.permutations(range(len(rows))))
    table = pd.DataFrame([rows[i] for i in order], columns=["task_id", "local_label", "role"])
    return Episodes(table.assign(image_id=np.arange(len(table))))


@given(drawn_tasks(), st.integers(1, 3))
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


@given(drawn_tasks())
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


@given(drawn_tasks())
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
