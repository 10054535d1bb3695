"""Find what a user's data holds, and everything that is wrong with it, for ``mela data check``.

An error here ends the stages images or manifest, and vice versa, since the same readers are used. Here they report
every problem instead of ending with the first.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from mela.data.sampling import pool_problems
from mela.errors import MelaError, plain, told
from mela.io.reading_errors import AboutFile
from mela.io.schemas import ROLES
from mela.sources.check.brightness import spread_between
from mela.sources.check.layout import Layout
from mela.sources.check.pictures import Inspected, Pictures, Progress, inspect_files
from mela.sources.class_folders import folder, folder_names
from mela.sources.duplicate_images import contradictions, copies_told
from mela.sources.folder_tree import Unused, unused_files
from mela.sources.meta_album import TABLES, album_names
from mela.sources.pinned_splits import moves
from mela.sources.plurals import images_are
from mela.sources.task_folders import natural_key, read_tasks, source_of
from mela.sources.task_rows import UNKNOWN, is_rest, labels_that_are_rest, unused_columns

LEAST_WAYS = 2
LEAST_IMAGES = 2
SHOTS = 5


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """Hold the shapes of the tasks of a data set.

    Attributes
    ----------
    table : DataFrame
        One row per task, by ``task_id`` in natural order: ``split`` (given, or drawn; empty where problems keep it
        from being drawn), ``ways``, ``images``, ``fewest`` and ``most`` (images of its local labels), ``support`` (most
        shots that each of its labels allows: the support images given, or all but one).
    training_images : int
        Different images of all training tasks.
    support, query : tuple of int or None
        Fewest and most images of a local label with this role; None where roles are not given.
    label_names : Counter of str
        Tasks that use each local label.
    splits_given : bool
    pinned : int
        Tasks whose splits the table of pins gives.
    brightness : float or None
        By how much the training tasks' local labels differ in brightness
        (`mela.sources.check.brightness.spread_between`); None if pixels were not read.
    rest : int
        Labels from which no task can be learned; see `mela.sources.task_rows.is_rest`.
    true_classes : int
        Those of all tasks; 0 where they are not given.
    unused_columns : tuple of str
        Columns of the table that nothing reads.
    """

    table: pd.DataFrame
    training_images: int
    support: tuple[int, int] | None
    query: tuple[int, int] | None
    label_names: Counter[str]
    splits_given: bool
    pinned: int
    rest: int
    brightness: float | None = None
    true_classes: int = 0
    unused_columns: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Classes:
    """Hold the classes of a data set.

    Attributes
    ----------
    table : DataFrame
        One row per class, by ``class``: ``split`` and ``images``.
    splits_given : bool
    """

    table: pd.DataFrame
    splits_given: bool

    def sizes(self, split: str) -> dict[str, int]:
        """Return how many images each class of a split has."""
        rows = self.table[self.table["split"] == split]
        return dict(zip(rows["class"], rows["images"].tolist(), strict=True))


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Hold all that was found.

    Attributes
    ----------
    layout : Layout
    pictures : Pictures
    tasks, classes : Tasks or None, Classes or None
        The one that belongs to the layout's kind.
    split_of : dict of str to str
        The split of every image; empty text where problems keep it from being drawn.
    unused : list of Unused
        Files that are not used, and images that the table does not name.
    moved : list of str
        A line if some tasks or classes changed their split since the last run.
    errors, warnings : list of str
        One line each. The data can be used if there is no error.
    """

    layout: Layout
    pictures: Pictures
    tasks: Tasks | None
    classes: Classes | None
    split_of: dict[str, str]
    unused: list[Unused]
    moved: list[str]
    errors: list[str]
    warnings: list[str]


def inspect(
    layout: Layout,
    *,
    split_fractions: Sequence[float],
    seed: int,
    decode: bool = True,
    progress: Progress = lambda names: names,
    known: dict[str, Inspected] | None = None,
) -> Findings:
    """Inspect a data set.

    Parameters
    ----------
    layout : Layout
    split_fractions, seed
        By which splits are drawn where they are not given; see `mela.params.DataParams`.
    decode : bool
        Read every image whole; see `mela.sources.check.pictures.inspect_files`.
    progress : callable
    known : dict, optional
        What was seen of images before; see `mela.sources.check.pictures.inspect_files`.
    """
    errors: list[str] = []
    tasks, classes, rows = None, None, None
    split_of: dict[str, str] = {}
    table = layout.root / layout.table if layout.table else None
    try:
        if layout.kind == "tasks":
            rows = read_tasks(layout.root, table, report=errors.append)
            tasks, split_of = _tasks(rows, layout.root, split_fractions, seed, errors)
            if tasks is not None and table is not None:
                tasks = replace(tasks, unused_columns=tuple(unused_columns(table)))
        else:
            classes, split_of = _classes(layout, table, split_fractions, seed, errors)
    except (MelaError, OSError) as error:
        # that nothing is left follows from what was told before
        if not (errors and str(error).startswith("data: no image")):
            errors.append(told(error) or str(error))
    # what was told of a file before need not be told again
    told_of = {error.path for error in errors if isinstance(error, AboutFile)}
    pictures = inspect_files(
        layout.root, sorted(set(split_of) - told_of), decode=decode, progress=progress, known=known
    )
    if rows is not None:
        errors += contradictions(rows, pictures.digests)
    if rows is not None and tasks is not None and not errors and pictures.brightness:
        tasks = replace(tasks, brightness=_brightness(rows, split_of, pictures.brightness))
    pins = layout.kind == "tasks" and layout.table is None
    listing, also = layout.table or layout.labels, TABLES if layout.labels else ()
    unused = unused_files(layout.root, split_of, table=listing, also=also, pins=pins) if layout.root.is_dir() else []
    others = sum(file.reason == f"not in {listing}" for file in unused)
    warnings = copies_told(pictures.copies, split_of) + (_thin_splits(classes) if classes else [])
    if tasks is not None and not errors:
        warnings += _thin_tasks(tasks) + ([labels_that_are_rest(tasks.rest)] if tasks.rest else [])
    if others:
        they_are = "it is" if others == 1 else "they are"
        warnings.append(f"{layout.root}: {images_are(others)} not in {listing}; {they_are} not used")
    return Findings(
        layout=layout,
        pictures=pictures,
        tasks=tasks,
        classes=classes,
        split_of=split_of,
        unused=unused,
        moved=list(moves(str(layout.root), _split_of_names(tasks, classes))) if not errors else [],
        errors=list(dict.fromkeys(map(_in_one_line, [*errors, *pictures.problems]))),
        warnings=warnings,
    )


def _tasks(
    rows: pd.DataFrame, root: Path, split_fractions: Sequence[float], seed: int, errors: list[str]
) -> tuple[Tasks | None, dict[str, str]]:
    if rows.empty:
        return None, {}
    splits_given = "split" in rows
    if errors:
        split_of = dict(zip(rows["image"], rows["split"] if splits_given else [""] * len(rows), strict=True))
    else:
        source = source_of(rows, root, shots=SHOTS, split_fractions=split_fractions, seed=seed)
        split_of = dict(zip(source.sources, source.splits, strict=True))
    rest, every = is_rest(rows), rows
    rows = rows[~rest]
    rows = rows.assign(split=rows["image"].map(split_of))
    per_label = rows.groupby(["task_id", "local_label"]).agg(images=("image", "size"), split=("split", "first"))
    of_role = {
        role: (rows["role"] == role).groupby([rows["task_id"], rows["local_label"]]).sum()
        for role in (ROLES if "role" in rows and len(rows) else ())
    }
    per_label["support"] = of_role.get("support", per_label["images"] - 1)
    ranges = {role: (int(counts.min()), int(counts.max())) for role, counts in of_role.items()}
    found = per_label.groupby("task_id").agg(
        split=("split", "first"),
        ways=("images", "size"),
        images=("images", "sum"),
        fewest=("images", "min"),
        most=("images", "max"),
        support=("support", "min"),
    )
    found = found.loc[sorted(found.index, key=natural_key)].reset_index()
    usable = {image: split for image, split in split_of.items() if not image.startswith(UNKNOWN)}
    tasks = Tasks(
        table=found,
        training_images=sum(split == "train" for split in usable.values()),
        support=ranges.get("support"),
        query=ranges.get("query"),
        label_names=Counter(per_label.index.get_level_values("local_label")),
        splits_given=splits_given,
        true_classes=every.loc[every["class"].str.strip() != "", "class"].nunique() if "class" in every else 0,
        rest=len(every[rest].drop_duplicates(["task_id", "local_label"])),
        pinned=int(rows.dropna(subset="pinned")["task_id"].nunique()) if "pinned" in rows else 0,
    )
    return tasks, usable


def _brightness(rows: pd.DataFrame, split_of: Mapping[str, str], brightness: Mapping[str, float]) -> float:
    seen = rows[~is_rest(rows) & (rows["image"].map(split_of) == "train") & rows["image"].isin(list(brightness))]
    return spread_between(seen["image"].map(brightness), seen.groupby(["task_id", "local_label"]).ngroup())


def _classes(
    layout: Layout, split_table: Path | None, split_fractions: Sequence[float], seed: int, errors: list[str]
) -> tuple[Classes, dict[str, str]]:
    source = folder(
        layout.root,
        split_table=split_table,
        split_fractions=split_fractions,
        seed=seed,
        report=errors.append,
        names=album_names if layout.labels else folder_names,
    )
    rows = pd.DataFrame({"class": source.classes, "split": source.splits})
    table = rows.groupby("class", sort=False).agg(split=("split", "first"), images=("split", "size")).reset_index()
    classes = Classes(table=table, splits_given=split_table is not None)
    for problem in pool_problems(classes.sizes("train"), ways=LEAST_WAYS, per_class=LEAST_IMAGES, split="train"):
        few = problem.startswith("tasks.ways")
        advice = "add classes" if few else "add images to this class, or leave it out of data.table"
        errors.append(f"{problem} at least; {advice}")
    return classes, dict(zip(source.sources, source.splits, strict=True))


def _split_of_names(tasks: Tasks | None, classes: Classes | None) -> dict[str, str]:
    if tasks is not None:
        return dict(zip(tasks.table["task_id"], tasks.table["split"], strict=True))
    return dict(zip(classes.table["class"], classes.table["split"], strict=True)) if classes is not None else {}


def _in_one_line(error: str) -> str:
    return AboutFile(plain(error), error.path) if isinstance(error, AboutFile) else plain(error)


def _thin_splits(classes: Classes) -> list[str]:
    """Return why there are no validation or test tasks."""
    return [
        f"{problem} at least; no {split} tasks are drawn"
        for split in ("val", "test")
        for problem in pool_problems(classes.sizes(split), ways=LEAST_WAYS, per_class=LEAST_IMAGES, split=split)
    ]


def _thin_tasks(tasks: Tasks) -> list[str]:
    found = int((tasks.table["split"] == "test").sum())
    why = "" if tasks.splits_given else " (tasks that share images stay in one split)"
    return [f"test tasks: found {found}{why}; accuracy is measured from 2 on"] if found < 2 else []
