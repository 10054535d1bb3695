"""Read data that comes as tasks, each with labels of its own; true classes, if given, are for scoring alone."""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from mela.errors import MelaError
from mela.io.reading_errors import Report, refuse
from mela.io.schemas import SPLITS
from mela.sources.folder_tree import check_files
from mela.sources.image_files import load_by_source, open_below, require_folder
from mela.sources.pinned_splits import PINS, read_pins
from mela.sources.source import REST, ImageSource
from mela.sources.splits_by_name import keyed_rank, split_by_fractions
from mela.sources.task_rows import check_tasks, is_rest, list_folders, read_table


def tasks(root: Path, *, table: Path | None, shots: int, split_fractions: Sequence[float], seed: int) -> ImageSource:
    """Read independently labelled tasks; their ways and shots may differ.

    Parameters
    ----------
    root : Path
        Folder of the images.
    table : Path or None
        CSV, TSV or Parquet file with the columns ``task_id``, ``local_label`` (text or integers), ``path`` (relative to
        `root`, with ``/``), and perhaps ``role`` (support or query), ``split`` (train, val or test), ``source``, the
        person whose the task is, and ``class``, the image's true class; other columns are ignored. A file that several
        tasks name is one image.
        Without a table, tasks are folders: ``root/<task>/<local label>/<image>``. There, a file ``splits.csv`` with the
        columns ``task`` and ``split`` may pin some of them; the others have the splits that they have without it.
    shots : int
        Where roles are not given: how many images of each local label become support (at most all but one); the
        others become query. Which, depends on the seed and the names within the task only.
    split_fractions : sequence of float, length 3
        Where splits are not given: the shares of train, val and test, by which the tasks are split. A task's split
        follows from its name (see `mela.sources.splits_by_name.split_by_fractions`). Tasks that share images or a
        source, even by way of other tasks, stay together, by one of their names, which does not depend on those of
        the others; if that connects all of them, all are train.
    seed : int

    Returns
    -------
    ImageSource
        With classes where the table has them. Labels of `mela.sources.task_rows.is_rest` are tasks of their own, in the
        split ``"rest"`` and with support images alone.

        Images are sorted by path. A task's number follows from its name (see `task_number`). Local
        labels are numbered from 0 in natural order ("t2" before "t10") within each task. Rows are sorted by the tasks'
        names in that order, local label, and support before query; below that, they keep the table's order where
        roles are given, and are shuffled where they are drawn.
    """
    if shots < 1:
        raise MelaError(f"tasks.shots: expected at least 1, got {shots}; set tasks.shots")
    return source_of(read_tasks(root, table), root, shots=shots, split_fractions=split_fractions, seed=seed)


def read_tasks(root: Path, table: Path | None, *, report: Report = refuse) -> pd.DataFrame:
    """Read rows of tasks as text, checked; columns as `mela.sources.task_rows.read_table` gives them.

    Parameters
    ----------
    root, table
        As `tasks` takes them.
    report : callable
        Told of each problem.
    """
    require_folder(root, "data.root")
    check_files(root, report=report)
    rows = list_folders(root, report=report) if table is None else read_table(table, root, report=report)
    check_tasks(rows, folders=table is None, report=report)
    main = rows[~is_rest(rows)]
    if "split" in rows and "train" not in set(main["split"]) and set(SPLITS).issuperset(rows["split"]) and len(main):
        report(f"{table}: expected tasks in the split 'train', got none; add them")
    if table is None and (pins := root / PINS).exists():
        rows = rows.assign(pinned=rows["task_id"].map(read_pins(pins, set(rows["task_id"]), report=report)))
        _check_pins(rows, pins, report)
    return rows


def source_of(
    rows: pd.DataFrame, root: Path, *, shots: int, split_fractions: Sequence[float], seed: int
) -> ImageSource:
    """Return the source of valid rows; parameters and result as `tasks` has them."""
    rest = is_rest(rows)
    rows, others = rows[~rest], rows[rest]
    if "split" not in rows:
        rows = rows.assign(split=_draw_splits(rows, split_fractions, seed=seed))
        if "train" not in set(rows["split"]):
            raise MelaError(
                f"{root / PINS}: expected tasks in the split 'train', got none; pin fewer of them elsewhere"
            )
    rows = _number_tasks(rows)
    if "role" in rows:
        rows = rows.assign(later=rows["role"] == "query").sort_values(["order", "label", "later"], kind="stable")
    else:
        rows = _draw_roles(rows, shots, seed=seed)
    split_of_names = dict(zip(rows["task_id"], rows["split"], strict=True))
    if len(others):
        others = _number_tasks(others.assign(split=REST, role="support"), taken=rows["task"].unique())
        rows = pd.concat([rows, others.sort_values(["order", "label"], kind="stable")], ignore_index=True)
    sources = sorted(rows["image"].unique())
    # an image that a task is learned from belongs to the split of that task
    split_of = dict(zip(rows["image"][::-1], rows["split"][::-1], strict=True))
    numbers = {source: i for i, source in enumerate(sources)}
    return ImageSource(
        splits=[split_of[source] for source in sources],
        sources=sources,
        load=partial(load_by_source, partial(open_below, root), sources),
        classes=_classes(rows, sources) if "class" in rows else None,
        tasks=pd.DataFrame(
            {
                "task_id": rows["task"].to_numpy(),
                "image_id": rows["image"].map(numbers).to_numpy(dtype=np.int64),
                "local_label": rows["label"].to_numpy(),
                "role": rows["role"].to_numpy(),
                "split": rows["split"].to_numpy(),
                "task": rows["task_id"].to_numpy(),
                "label": rows["local_label"].to_numpy(),
            }
            | ({"source": rows["source"].to_numpy()} if "source" in rows else {})
        ),
        split_of_names=split_of_names,
    )


def _classes(rows: pd.DataFrame, images: Sequence[str]) -> list[str]:
    """Return the true class of each image."""
    class_of = dict(zip(rows["image"], rows["class"], strict=True))
    return [class_of[image] for image in images]


def _number_tasks(rows: pd.DataFrame, taken: Collection[int] = ()) -> pd.DataFrame:
    """Add the numbers ``task`` and ``label`` (within its task), and ``order``, the rank of the task's name.

    No task gets a number that is taken.
    """
    pairs = sorted(
        set(zip(rows["task_id"], rows["local_label"], strict=True)),
        key=lambda pair: (natural_key(pair[0]), natural_key(pair[1])),
    )
    numbered = pd.DataFrame(pairs, columns=["task_id", "local_label"])
    numbers = task_numbers(numbered["task_id"].unique(), taken)
    numbered["order"] = pd.factorize(numbered["task_id"])[0]
    numbered["task"] = numbered["task_id"].map(numbers).astype(np.int64)
    numbered["label"] = numbered.groupby("task").cumcount().astype(np.int64)
    return rows.merge(numbered, on=["task_id", "local_label"], how="left", validate="many_to_one")


def task_number(name: str, attempt: int = 0) -> int:
    """Return the number of a task, which follows from its name alone: 52 bits, exact in any software."""
    return int(hashlib.sha256("\0".join(("task", name, *["again"] * attempt)).encode()).hexdigest()[:13], 16)


def task_numbers(names: Iterable[str], taken: Collection[int] = ()) -> dict[str, int]:
    """Return a number for each name, all different and none that is taken.

    Where two names have the same number, as one in 100 million pairs of 10,000 tasks each would, the later one takes
    its next number.
    """
    known = set(taken)
    numbers: dict[str, int] = {}
    for name in names:
        attempt = 0
        while (number := task_number(name, attempt)) in known:
            attempt += 1
        known.add(number)
        numbers[name] = number
    return numbers


def natural_key(text: str) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key by which "t2" comes before "t10"; no two texts share a key."""
    # Odd parts are runs of digits: the longer number is the larger one once leading zeros are gone.
    parts = re.split("([0-9]+)", text)
    chunks = [(len(part.lstrip("0")), part.lstrip("0")) if i % 2 else (0, part) for i, part in enumerate(parts)]
    return chunks, text


def _draw_splits(rows: pd.DataFrame, fractions: Sequence[float], *, seed: int) -> "pd.Series[str]":
    """Return each row's split, pinned or drawn; tasks connected by shared images or sources have the same."""
    group = _groups(rows)
    split_of = split_by_fractions(Counter(group), fractions, seed=seed)
    found = group.map(split_of)
    if "pinned" in rows:
        found = _pins(rows, group).groupby(group).transform("first").fillna(found)
    return rows["task_id"].map(found)


def _groups(rows: pd.DataFrame) -> "pd.Series[str]":
    """Return for each task, in natural order, the one that decides for all tasks connected by images or sources.

    That is the one with the smallest number, so that a further task decides only if its own number is smaller still.
    """
    task, names = pd.factorize(rows["task_id"])
    image, images = pd.factorize(rows["image"])
    places = [image]
    if "source" in rows:
        places.append(len(images) + pd.factorize(rows["source"])[0])
    ends = len(names) + np.concatenate(places)
    size = int(ends.max()) + 1
    edges = coo_array((np.ones(len(ends), dtype=np.int8), (np.tile(task, len(places)), ends)), shape=(size, size))
    component = connected_components(edges, directed=False)[1][: len(names)]
    order = sorted(range(len(names)), key=lambda place: natural_key(str(names[place])))
    members = pd.DataFrame({"name": names, "component": component}).iloc[order]
    ranked = members.assign(number=members["name"].map(task_number)).sort_values(["number", "name"])
    decides = ranked.groupby("component")["name"].first()
    return pd.Series(members["component"].map(decides).to_numpy(), index=members["name"])


def _pins(rows: pd.DataFrame, group: "pd.Series[str]") -> "pd.Series[str]":
    """Return the split to which each task is pinned, in the order of `group`; missing if it is not."""
    return rows.drop_duplicates("task_id").set_index("task_id")["pinned"].reindex(group.index)


def _check_pins(rows: pd.DataFrame, table: Path, report: Report) -> None:
    group = _groups(rows)
    pins = _pins(rows, group).dropna()
    for name, members in pins.groupby(group[pins.index], sort=False):
        one, *others = members.index[members.ne(members.iloc[0]) | (np.arange(len(members)) == 0)]
        if others:
            first = group.index[group == name][0]
            report(
                f"{table}: expected one split for tasks that share images, got {members[one]} for {one!r} and "
                f"{members[others[0]]} for {others[0]!r} (both belong with {first!r}); pin them to the same split"
            )


def _draw_roles(rows: pd.DataFrame, shots: int, *, seed: int) -> pd.DataFrame:
    names = zip(rows["task_id"], rows["local_label"], rows["image"], strict=True)
    ranked = rows.assign(rank=[keyed_rank("role", *row, seed=seed) for row in names])
    ranked = ranked.sort_values(["order", "label", "rank"], kind="stable")
    groups = ranked.groupby(["task", "label"])["image"]
    is_support = groups.cumcount() < np.minimum(shots, groups.transform("size") - 1)
    return ranked.assign(role=np.where(is_support, "support", "query"))
