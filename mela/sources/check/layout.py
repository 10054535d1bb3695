"""Tell what kind of data lies at a path by its folders and tables, before anything else is read."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mela.errors import MelaError
from mela.io.text_tables import TEXT_SUFFIXES, folded
from mela.sources.image_files import walk_images
from mela.sources.image_kinds import ARCHIVE_SUFFIXES, unpack_it
from mela.sources.meta_album import LABELS, is_meta_album
from mela.sources.task_rows import columns_of

Kind = Literal["tasks", "classes"]
SUFFIXES = (*TEXT_SUFFIXES, ".parquet")
SPLIT_NAMES = frozenset({"train", "training", "val", "valid", "validation", "dev", "test", "testing"})


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Hold where data lies, and what it is taken for.

    Attributes
    ----------
    kind : {"tasks", "classes"}
        Tasks with labels of their own, or folders of global classes.
    root : Path
        Folder of the images.
    table : str or None
        Name of a table in it: of the tasks, or of the classes' splits.
    reason : str
        Why it is taken for this kind, for the user.
    labels : str or None
        Name of the table of each image's class, where folders do not tell it.
    """

    kind: Kind
    root: Path
    table: str | None
    reason: str
    labels: str | None = None

    @property
    def name(self) -> str:
        """Value of ``data.name``."""
        if self.kind == "tasks":
            return "tasks"
        return "meta_album" if self.labels else "folder"


def find_layout(path: Path, kind: Kind | None = None) -> Layout:
    """Tell what lies at `path`.

    Parameters
    ----------
    path : Path
        A folder of images, perhaps with a table in it, or such a table.
    kind : {"tasks", "classes"} or None
        What to take it for; None decides by what is there.

    Raises
    ------
    MelaError
        Nothing is there, a file that is no table, or several tables of one kind.
    """
    if path.name == LABELS and is_meta_album(path.parent):
        path = path.parent
    if path.is_file():
        if path.suffix.lower() in ARCHIVE_SUFFIXES:
            raise MelaError(f"{path}: expected a folder of images, got an archive; {unpack_it(path)}")
        if path.suffix.lower() not in SUFFIXES:
            raise MelaError(
                f"{path}: expected a folder of images, or a table ({' or '.join(SUFFIXES)}), got another file; "
                "name the folder of the images, or save the table in one of these formats"
            )
        found = kind or ("classes" if _is_split_table(path) and not _is_task_table(path) else "tasks")
        labels = LABELS if found == "classes" and is_meta_album(path.parent) else None
        reason = _of_table(path.name, found, kind)
        return Layout(kind=found, root=path.parent, table=path.name, reason=reason, labels=labels)
    if not path.is_dir():
        raise MelaError(f"{path}: expected a folder of images, or a table of them, got nothing; correct the path")
    labels = LABELS if is_meta_album(path) else None
    for choice, is_table in (("tasks", _is_task_table), ("classes", _is_split_table)):
        tables = [file for file in sorted(path.iterdir()) if file.suffix.lower() in SUFFIXES and is_table(file)]
        if kind not in (None, choice) or not tables:
            continue
        if len(tables) > 1:
            names = ", ".join(file.name for file in tables)
            raise MelaError(f"{path}: expected one table of {choice}, got {names}; name one of them in place of {path}")
        found = "tasks" if choice == "tasks" else "classes"
        reason = _of_table(tables[0].name, found, kind)
        return Layout(kind=found, root=path, table=tables[0].name, reason=reason, labels=labels)
    if kind is not None:
        return Layout(kind=kind, root=path, table=None, reason="as asked for", labels=labels)
    if labels is not None:
        reason = f"since {labels} names the class of each image, as in Meta-Album"
        return Layout(kind="classes", root=path, table=None, reason=reason, labels=labels)
    return _by_folders(path)


def _of_table(name: str, found: Kind, asked: Kind | None) -> str:
    if asked:
        return f"as asked for, with the table {name}"
    columns = "split and class" if found == "classes" else "tasks and their images"
    return f"since {name} is a table of {columns}"


def _by_folders(root: Path) -> Layout:
    folders = [folder for folder, _ in walk_images(root, report=lambda problem: None)]
    deep = [folder for folder in folders if folder.count("/") == 1]
    labels = Counter(folder.split("/")[0] for folder in deep)
    several = sum(count > 1 for count in labels.values())
    reason = f"since images lie in <folder>/<folder>/<image> in {len(deep)} of {len(folders)} folders with images"
    if deep and SPLIT_NAMES.issuperset(name.lower() for name in labels):
        reason = f"since the folders above those with images are called {', '.join(sorted(labels))}"
    elif 2 * len(deep) > len(folders) and len(labels) > 1 and 2 * several >= len(labels):
        return Layout(kind="tasks", root=root, table=None, reason=reason)
    elif 2 * len(deep) > len(folders):
        reason += ", but too few of the upper folders hold several, as tasks with their labels would"
    else:
        reason = f"since images lie in <task>/<label>/<image> in only {len(deep)} of {len(folders)} folders with images"
    return Layout(kind="classes", root=root, table=None, reason=reason)


def _is_task_table(path: Path) -> bool:
    return path.stem.lower() == "tasks" or {"task_id", "local_label"} <= _columns(path, ("task_id", "local_label"))


def _is_split_table(path: Path) -> bool:
    return path.suffix.lower() in TEXT_SUFFIXES and {"split", "class"} <= _columns(path, ("split", "class"))


def _columns(path: Path, wanted: Collection[str]) -> set[str]:
    """Return the names of a table's columns, as `folded` has them; none if it cannot be read.

    A table whose names differ in case is one of its kind, and refused later by a line that says what to rename.
    """
    return set(map(folded, columns_of(path, wanted)))
