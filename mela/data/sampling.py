"""Draw tasks from classes, once, so that every method meets the same ones.

A task is *ways* classes with *shots* support and *queries* query images each. Local labels number the classes in the
order in which they were drawn, so they say nothing about the global class.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from mela.data.array_types import Ints
from mela.errors import MelaError
from mela.params import TaskParams


def draw_with_replacement(
    classes: Mapping[str, Ints], *, n_tasks: int, ways: int, shots: int, queries: int, seed: int, split: str
) -> pd.DataFrame:
    """Draw independent tasks; an image may return in another task, never within one.

    Task t depends on (seed, split, t) alone: a longer manifest begins with the shorter one.

    Parameters
    ----------
    classes : mapping of class name to image ids (n_c,)
    n_tasks, ways, shots, queries : int
    seed : int
    split : str
        Keeps the draws of train, val and test apart; named in errors.

    Returns
    -------
    DataFrame with columns task_id, image_id, local_label, role
        ``ways * (shots + queries)`` rows per task, support before query within a class.

    Raises
    ------
    MelaError
        Fewer classes than ways, or a class with fewer than shots + queries images.
    """
    per_class = shots + queries
    pools = _pools(classes, ways=ways, per_class=per_class, split=split) if n_tasks else []
    drawn = np.empty((n_tasks, ways, per_class), dtype=np.int64)
    split_key = int.from_bytes(split.encode(), "big")
    for task in range(n_tasks):
        generator = np.random.default_rng(np.random.SeedSequence([seed, split_key, task]))
        for way, chosen in enumerate(generator.choice(len(pools), size=ways, replace=False)):
            drawn[task, way] = generator.choice(pools[chosen], size=per_class, replace=False)
    return task_table(drawn, shots)


def draw_without_replacement(
    classes: Mapping[str, Ints], *, n_tasks: int | None, ways: int, shots: int, queries: int, seed: int, split: str
) -> pd.DataFrame:
    """Draw tasks that share no image.

    Each class holds ``b = n_c // (shots + queries)`` blocks of images; a task takes one block of each of its classes,
    which are drawn in proportion to the blocks that remain. R further tasks are possible if and only if
    ``sum(min(b, R)) >= ways * R``. The slack is the left side less the right side. It falls by one for each class with
    at least R blocks that a task leaves out. So as many of these classes are drawn first as the slack does not allow to
    leave out. Hence the largest possible number of tasks is always reached: 64 classes of 600 images give all 384 tasks
    of 5 x 20.

    Parameters and returns as `draw_with_replacement`; ``n_tasks=None`` draws as many as there can be.

    Raises
    ------
    MelaError
        As there, or the images allow fewer tasks; the message says how many.
    """
    per_class = shots + queries
    pools = _pools(classes, ways=ways, per_class=per_class, split=split)
    generator = np.random.default_rng(np.random.SeedSequence([seed, int.from_bytes(split.encode(), "big")]))
    pools = [generator.permutation(pool) for pool in pools]
    blocks = np.array([len(pool) // per_class for pool in pools], dtype=np.int64)
    most = _most_tasks(blocks, ways)
    n_tasks = most if n_tasks is None else n_tasks
    if n_tasks > most:
        raise MelaError(
            f"tasks.{split}: expected at most {most} tasks without replacement ({len(pools)} classes, {ways} ways, "
            f"{per_class} images per class and task), got {n_tasks}; lower it or set tasks.replacement: true"
        )
    drawn = np.empty((n_tasks, ways, per_class), dtype=np.int64)
    for task in range(n_tasks):
        remaining = n_tasks - task
        plenty = blocks >= remaining
        slack = int(np.minimum(blocks, remaining).sum()) - ways * remaining
        forced = _weighted(np.where(plenty, blocks, 0), max(0, int(plenty.sum()) - slack), generator)
        others = blocks.copy()
        others[forced] = 0
        chosen = generator.permutation(np.concatenate([forced, _weighted(others, ways - len(forced), generator)]))
        for way, index in enumerate(chosen):
            end = blocks[index] * per_class
            drawn[task, way] = pools[index][end - per_class : end]
        blocks[chosen] -= 1
    return task_table(drawn, shots)


def pool_problems(sizes: Mapping[str, int], *, ways: int, per_class: int, split: str) -> Iterator[str]:
    """Yield why tasks of `ways` classes with `per_class` images each cannot be drawn from classes of these sizes."""
    if len(sizes) < ways:
        yield f"tasks.ways: the split {split} has only {len(sizes)} of the {ways} classes that a task needs"
    for name, size in sizes.items():
        if size < per_class:
            yield (
                f"tasks.shots + tasks.queries: {split} class {name!r} has only {size} of the {per_class} images that a "
                "task needs"
            )


def _pools(classes: Mapping[str, Ints], *, ways: int, per_class: int, split: str) -> list[Ints]:
    sizes = {name: len(pool) for name, pool in classes.items()}
    for problem in pool_problems(sizes, ways=ways, per_class=per_class, split=split):
        raise MelaError(f"{problem}; lower it, or add data to this split")
    return [np.asarray(classes[name], dtype=np.int64) for name in sorted(classes)]


def _most_tasks(blocks: Ints, ways: int) -> int:
    low, high = 0, int(blocks.sum()) // ways
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(blocks, middle).sum()) >= ways * middle:
            low = middle
        else:
            high = middle - 1
    return low


def _weighted(weights: Ints, size: int, generator: np.random.Generator) -> Ints:
    if size == 0:
        return np.empty(0, dtype=np.int64)
    return generator.choice(len(weights), size=size, replace=False, p=weights / weights.sum())


def task_table(drawn: Ints, shots: int) -> pd.DataFrame:
    """Return the table of `draw_with_replacement` for drawn images, int64 (n_tasks, ways, shots + queries)."""
    n_tasks, ways, per_class = drawn.shape
    position = np.tile(np.arange(per_class), n_tasks * ways)
    return pd.DataFrame(
        {
            "task_id": np.repeat(np.arange(n_tasks), ways * per_class),
            "image_id": drawn.reshape(-1),
            "local_label": np.tile(np.repeat(np.arange(ways), per_class), n_tasks),
            "role": np.where(position < shots, "support", "query"),
        }
    )


COLUMNS = ["task_id", "image_id", "local_label", "role"]


def given_split(tasks: pd.DataFrame, split: str) -> pd.DataFrame:
    """Return the tasks of one split of data that came as tasks."""
    return tasks.loc[tasks["split"] == split, COLUMNS].reset_index(drop=True)


def draw_split(images: pd.DataFrame, settings: TaskParams, split: str) -> pd.DataFrame:
    """Draw the tasks of one split from its true classes.

    Parameters
    ----------
    images : DataFrame
        Columns image_id and class, the images of this split; perhaps ``dataset``. Then a task is of one data set, each
        of which has as many tasks as the settings say, and these take turns.
    settings : TaskParams
    split : {"train", "val", "test"}
        Only training tasks may be drawn without replacement; the others are independent of each other.

    Returns
    -------
    DataFrame
        As of `draw_with_replacement`, with the column ``dataset`` where there are several and the tasks are no training
        tasks.

    Raises
    ------
    MelaError
        The classes do not allow the tasks asked for.
    """
    counts = {"train": settings.train, "val": settings.val, "test": settings.test}
    count, several = counts[split], "dataset" in images
    columns = [*COLUMNS, *(["dataset"] if several and split != "train" else [])]
    if count == 0:
        texts = ("role", "dataset")
        return pd.DataFrame({name: pd.Series(dtype=object if name in texts else np.int64) for name in columns})
    if images.empty:
        raise MelaError(
            f"tasks.{split} is {count}, but no {split} class has images; set it to 0, or give classes to this split"
        )
    if not several:
        return _draw(images, settings, split, count, split)
    parts = [
        _draw(own, settings, split, count, f"{split} of {name}").assign(dataset=name, turn=turn)
        for turn, (name, own) in enumerate(images.groupby("dataset"))
    ]
    drawn = pd.concat(parts, ignore_index=True).sort_values(["task_id", "turn"], kind="stable", ignore_index=True)
    return drawn.assign(task_id=drawn.groupby(["task_id", "turn"]).ngroup())[columns]


def _draw(images: pd.DataFrame, settings: TaskParams, split: str, count: int | None, called: str) -> pd.DataFrame:
    """Draw tasks of one data set; messages and draws depend on what the split is called."""
    classes = {str(name): ids.to_numpy(dtype=np.int64) for name, ids in images.groupby("class")["image_id"]}
    shape = {"ways": settings.ways, "shots": settings.shots, "queries": settings.queries, "seed": settings.seed}
    if split == "train" and not settings.replacement:
        return draw_without_replacement(classes, n_tasks=count, split=called, **shape)
    return draw_with_replacement(classes, n_tasks=count or 0, split=called, **shape)
