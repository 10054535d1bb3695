"""Drawing tasks: their shape, what they share, and how many there can be."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mela.data.sampling import draw_with_replacement, draw_without_replacement
from mela.errors import MelaError

COLUMNS = ["task_id", "image_id", "local_label", "role"]
Classes = dict[str, np.ndarray]
Draw = Callable[..., pd.DataFrame]

properties = settings(deadline=None, max_examples=50)


def make_classes(sizes: list[int]) -> Classes:
    """Classes of the given sizes whose image ids are scattered over 0 to sum(sizes) - 1."""
    ids = np.random.default_rng(0).permutation(sum(sizes))
    return {f"c{i}": np.sort(part) for i, part in enumerate(np.split(ids, np.cumsum(sizes)[:-1]))}


def class_of(classes: Classes) -> dict[int, str]:
    return {int(image): name for name, images in classes.items() for image in images}


@st.composite
def problems(draw: st.DrawFn) -> tuple[Classes, dict[str, int]]:
    ways, shots, queries = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    per_class = shots + queries
    sizes = draw(st.lists(st.integers(per_class, 5 * per_class), min_size=ways, max_size=ways + 4))
    shape = {"ways": ways, "shots": shots, "queries": queries, "seed": draw(st.integers(0, 2**32))}
    return make_classes(sizes), shape


def most_tasks(classes: Classes, shape: Mapping[str, Any]) -> int:
    """The largest number n for which there are enough images: no task has a class twice, so none counts above n."""
    blocks = [len(images) // (shape["shots"] + shape["queries"]) for images in classes.values()]
    numbers = range(sum(blocks) + 1)
    return max(n for n in numbers if sum(min(count, n) for count in blocks) >= shape["ways"] * n)


@pytest.mark.parametrize(("draw", "n_tasks"), [(draw_with_replacement, 6), (draw_without_replacement, None)])
@given(problem=problems())
@properties
def test_a_task_is_ways_classes_of_shots_and_queries(
    draw: Draw, n_tasks: int | None, problem: tuple[Classes, dict[str, Any]]
) -> None:
    classes, shape = problem
    tasks = draw(classes, n_tasks=n_tasks, split="train", **shape)
    names = class_of(classes)
    assert list(tasks.columns) == COLUMNS
    assert sorted(tasks["task_id"].unique()) == list(range(tasks["task_id"].nunique()))
    assert n_tasks is None or tasks["task_id"].nunique() == n_tasks
    roles = ["support"] * shape["shots"] + ["query"] * shape["queries"]
    for _, task in tasks.groupby("task_id"):
        assert len(task) == shape["ways"] * len(roles)
        assert task["image_id"].is_unique
        assert task["local_label"].unique().tolist() == list(range(shape["ways"]))
        true = []
        for _, local in task.groupby("local_label"):
            assert local["role"].tolist() == roles
            (name,) = {names[image] for image in local["image_id"]}
            true.append(name)
        assert len(set(true)) == shape["ways"]


@given(problem=problems(), short=st.integers(0, 5), extra=st.integers(0, 5))
@properties
def test_with_replacement_a_longer_manifest_begins_with_the_shorter(
    problem: tuple[Classes, dict[str, Any]], short: int, extra: int
) -> None:
    classes, shape = problem
    first = draw_with_replacement(classes, n_tasks=short, split="val", **shape)
    longer = draw_with_replacement(classes, n_tasks=short + extra, split="val", **shape)
    pd.testing.assert_frame_equal(first, longer.head(len(first)))


@pytest.mark.parametrize("draw", [draw_with_replacement, draw_without_replacement])
def test_seed_and_split_decide_the_tasks(draw: Draw) -> None:
    classes = make_classes([30] * 8)
    shape = {"n_tasks": 5, "ways": 3, "shots": 2, "queries": 2}
    tasks = draw(classes, seed=1, split="train", **shape)
    pd.testing.assert_frame_equal(tasks, draw(classes, seed=1, split="train", **shape))
    reordered = dict(reversed(classes.items()))
    pd.testing.assert_frame_equal(tasks, draw(reordered, seed=1, split="train", **shape))
    for seed, split in [(2, "train"), (1, "val"), (1, "test")]:
        assert not tasks.equals(draw(classes, seed=seed, split=split, **shape))


@pytest.mark.parametrize("draw", [draw_with_replacement, draw_without_replacement])
def test_local_labels_say_nothing_about_the_class(draw: Draw) -> None:
    classes = make_classes([300] * 10)
    tasks = draw(classes, n_tasks=300, ways=5, shots=1, queries=1, seed=0, split="train")
    true = tasks["image_id"].map(class_of(classes)).to_numpy()
    table = pd.crosstab(true[::2], tasks["local_label"].to_numpy()[::2])
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_a_class_that_every_task_needs_has_every_local_label() -> None:
    classes = make_classes([200] + [20] * 20)
    tasks = draw_without_replacement(classes, n_tasks=None, ways=3, shots=1, queries=0, seed=0, split="train")
    assert tasks["task_id"].nunique() == 200
    of_large = tasks.loc[tasks["image_id"].isin(classes["c0"]), "local_label"]
    assert len(of_large) == 200
    assert stats.chisquare(np.bincount(of_large, minlength=3)).pvalue > 1e-3


def test_a_larger_class_is_drawn_more_often_without_replacement() -> None:
    classes = make_classes([20, 10, 10, 10, 10])
    shape = {"n_tasks": 1, "ways": 1, "shots": 1, "queries": 0, "split": "train"}
    drawn = [draw_without_replacement(classes, seed=seed, **shape)["image_id"].item() for seed in range(600)]
    assert stats.binomtest(int(np.isin(drawn, classes["c0"]).sum()), 600, 1 / 3).pvalue > 1e-3


@pytest.mark.parametrize("draw", [draw_with_replacement, draw_without_replacement])
def test_every_image_of_a_class_can_be_drawn(draw: Draw) -> None:
    classes = make_classes([7] * 4)
    shape = {"n_tasks": 1, "ways": 2, "shots": 1, "queries": 2, "split": "train"}
    drawn = Counter(image for seed in range(200) for image in draw(classes, seed=seed, **shape)["image_id"])
    assert set(drawn) == set(range(28))
    assert max(drawn.values()) < 3 * min(drawn.values())


@given(problem=problems(), share=st.floats(0, 1))
@properties
def test_without_replacement_no_image_returns(problem: tuple[Classes, dict[str, Any]], share: float) -> None:
    classes, shape = problem
    count = round(share * most_tasks(classes, shape))
    tasks = draw_without_replacement(classes, n_tasks=count, split="train", **shape)
    assert tasks["task_id"].nunique() == count
    assert tasks["image_id"].is_unique


@given(problem=problems())
@settings(deadline=None, max_examples=150)
def test_without_replacement_reaches_the_largest_number_of_tasks(problem: tuple[Classes, dict[str, Any]]) -> None:
    classes, shape = problem
    most = most_tasks(classes, shape)
    tasks = draw_without_replacement(classes, n_tasks=None, split="train", **shape)
    assert tasks["task_id"].nunique() == most
    per_class = shape["shots"] + shape["queries"]
    message = (
        f"tasks.train: expected at most {most} tasks without replacement ({len(classes)} classes, {shape['ways']} "
        f"ways, {per_class} images per class and task), got {most + 1}; lower it or set tasks.replacement: true"
    )
    with pytest.raises(MelaError, match=f"^{re.escape(message)}$"):
        draw_without_replacement(classes, n_tasks=most + 1, split="train", **shape)


@given(sizes=st.lists(st.integers(1, 40), min_size=3, max_size=30), ways=st.integers(2, 3), seed=st.integers(0, 2**32))
@properties
def test_the_largest_number_of_tasks_is_the_bound(sizes: list[int], ways: int, seed: int) -> None:
    shape = {"ways": ways, "shots": 1, "queries": 0, "seed": seed, "split": "train"}
    classes = make_classes(sizes)
    tasks = draw_without_replacement(classes, n_tasks=None, **shape)
    assert tasks["task_id"].nunique() == most_tasks(classes, shape)


@pytest.mark.parametrize("seed", range(3))
def test_mini_imagenet_gives_384_tasks_that_use_every_image(seed: int) -> None:
    classes = make_classes([600] * 64)
    shape = {"ways": 5, "shots": 5, "queries": 15, "seed": seed, "split": "train"}
    tasks = draw_without_replacement(classes, n_tasks=None, **shape)
    assert tasks["task_id"].nunique() == 384
    assert sorted(tasks["image_id"]) == list(range(64 * 600))
    with pytest.raises(MelaError, match=r"^tasks\.train: expected at most 384 tasks .*\(64 classes.* got 385; "):
        draw_without_replacement(classes, n_tasks=385, **shape)


@pytest.mark.parametrize("draw", [draw_with_replacement, draw_without_replacement])
@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([20] * 4, r"^tasks\.ways: .* only 4 of the 5 classes"),
        ([], r"^tasks\.ways: .* only 0 of the 5 classes"),
        (
            [20, 20, 19, 20, 20],
            r"^tasks\.shots \+ tasks\.queries: test class 'c2' has only 19 of the 20 images",
        ),
    ],
)
def test_too_few_classes_or_images(draw: Draw, sizes: list[int], message: str) -> None:
    classes = make_classes(sizes) if sizes else {}
    with pytest.raises(MelaError, match=message):
        draw(classes, n_tasks=1, ways=5, shots=5, queries=15, seed=0, split="test")


@pytest.mark.parametrize("draw", [draw_with_replacement, draw_without_replacement])
def test_zero_tasks(draw: Draw) -> None:
    tasks = draw(make_classes([4] * 3), n_tasks=0, ways=3, shots=1, queries=1, seed=0, split="val")
    assert list(tasks.columns) == COLUMNS
    assert tasks.empty
