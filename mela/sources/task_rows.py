"""Read one row per (task, image) as text, from a table or from folders, and check the rows."""

from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mela.errors import MelaError
from mela.io.reading_errors import Report, refuse
from mela.io.schemas import ROLES, SPLITS
from mela.io.text_tables import TEXT_SUFFIXES, find_separator, parse_csv, read_header, read_text, require_columns
from mela.sources.image_files import walk_images
from mela.sources.image_kinds import HEIF_SUFFIXES, is_image, is_image_name, suffixes, why_unused
from mela.sources.plurals import count_of

REQUIRED = ("task_id", "local_label", "path")
OPTIONAL = ("role", "split", "source", "class")
# no path of a file holds NUL, and NumPy drops one at the end of text
UNKNOWN = "\0:"


def read_table(table: Path, root: Path, *, report: Report = refuse) -> pd.DataFrame:
    """Read a CSV, TSV or Parquet file of tasks.

    Parameters
    ----------
    table, root : Path
    report : callable
        Told of each problem of a row. Rows without task or label are left out; others stay, so that what is said of
        their task still counts them.

    Returns
    -------
    DataFrame
        Columns of text ``task_id``, ``local_label``, ``path``, perhaps ``role``, ``split``, ``source`` and ``class``;
        ``place``, what messages call the row (a CSV line, the header being line 1, or a Parquet row, the first being
        row 1); ``image``, the real path below `root`, the same wherever the same file is meant (it begins with
        ``UNKNOWN`` where there is none).

    Raises
    ------
    MelaError
        One line that names the file and, where there is one, the row.
    """
    suffix = table.suffix.lower()
    if suffix in TEXT_SUFFIXES:
        rows = _read_csv(table, report)
    elif suffix == ".parquet":
        rows = _read_parquet(table, report)
    else:
        raise MelaError(f"data.table: expected a file .csv, .tsv or .parquet, got {str(table)!r}; set data.table")
    if rows.empty:
        raise MelaError(f"{table}: expected one row per task and image, got an empty table; add rows")
    _check_cells(rows, report)
    rows = rows[~_blank(rows["task_id"]) & ~_blank(rows["local_label"])].reset_index(drop=True)
    real = root.resolve()
    paths = rows[~_blank(rows["path"])].drop_duplicates("path")
    images = {}
    for path, place in zip(paths["path"], paths["place"], strict=True):
        try:
            images[path] = _locate(real, path, place)
        except MelaError as problem:
            report(str(problem))
    rows["image"] = rows["path"].map(images).where(rows["path"].isin(list(images)), UNKNOWN + rows["place"])
    return rows


def columns_of(table: Path, wanted: Collection[str]) -> list[str]:
    """Return the names of a table's columns, of which some are wanted; none if it cannot be read."""
    try:
        if table.suffix.lower() == ".parquet":
            return list(pq.read_schema(table).names)
        text = read_text(table, "data.table")
        return read_header(text, find_separator(text, wanted))
    except (MelaError, OSError, pa.ArrowException, UnicodeDecodeError):
        return []


def unused_columns(table: Path) -> list[str]:
    """Return the columns of a table of tasks that nothing reads, but for row numbers that pandas has written."""
    unread = [name for name in columns_of(table, REQUIRED) if name not in (*REQUIRED, *OPTIONAL)]
    return [name for name in unread if name and not name.startswith("__index_level_")]


def _read_csv(table: Path, report: Report) -> pd.DataFrame:
    text = parse_csv(read_text(table, "data.table"), where=str(table), required=REQUIRED, report=report)
    columns = {name: text.columns[name] for name in (*REQUIRED, *OPTIONAL) if name in text.columns}
    return pd.DataFrame({**columns, "place": [f"{table}, line {line}" for line in text.lines]})


def _read_parquet(table: Path, report: Report) -> pd.DataFrame:
    try:
        header = pq.read_schema(table).names
        require_columns(header, where=str(table), required=REQUIRED, report=report)
        content = pq.read_table(table, columns=[name for name in (*REQUIRED, *OPTIONAL) if name in header])
        cells = {name: content[name].to_pylist() for name in content.column_names}
    # UnicodeDecodeError: text that is no UTF-8
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise MelaError(f"data.table: expected a Parquet file at {table}, got {reason}; set data.table") from error
    columns = {
        name: [_as_text(cell, f"{table}, row {i}", name, report) for i, cell in enumerate(column, start=1)]
        for name, column in cells.items()
    }
    return pd.DataFrame({**columns, "place": [f"{table}, row {i}" for i in range(1, content.num_rows + 1)]})


def _as_text(cell: object, place: str, column: str, report: Report) -> str:
    if cell is None:
        return ""
    if not isinstance(cell, str | int) or isinstance(cell, bool):
        report(f"{place}: expected text or an integer as {column}, got {cell!r}; convert the column")
    return str(cell)


def _check_cells(rows: pd.DataFrame, report: Report) -> None:
    for column in rows.columns.drop("place"):
        for row in _each(rows, _blank(rows[column])):
            # without the row the image would be lost for what nobody has to know
            todo = "fill all of them, or rename the column" if column == "class" else "fill it or remove the row"
            report(f"{row['place']}: expected a {column}, got an empty cell; {todo}")
    for column, known in (("role", ROLES), ("split", SPLITS)):
        if column in rows:
            for row in _each(rows, ~rows[column].isin(known) & ~_blank(rows[column])):
                choices = " or ".join(known)
                report(f"{row['place']}: expected the {column} {choices}, got {row[column]!r}; correct it")


def _blank(column: "pd.Series[str]") -> "pd.Series[bool]":
    return column.str.strip() == ""


def _each(rows: pd.DataFrame, wrong: "pd.Series[bool]", *keys: str) -> Iterator[dict[str, Any]]:
    """Yield the wrong rows; given keys, the first one of each kind."""
    found = rows[wrong]
    for row in (found.drop_duplicates(list(keys)) if keys else found).itertuples(index=False):
        yield dict(zip(found.columns, row, strict=True))


def _locate(root: Path, path: str, place: str) -> str:
    """Return the real path of an image relative to `root`, itself a real path."""
    relative = PurePosixPath(path)
    if relative.suffix and not is_image_name(f"x{relative.suffix}"):
        raise _no_image(path, place)
    absolute = relative.is_absolute() or PureWindowsPath(path).is_absolute()
    if absolute or ".." in relative.parts:
        raise MelaError(
            f"{place}: expected a path below data.root ({root}), got {path!r}; write it relative to data.root"
        )
    try:
        real = (root / path).resolve(strict=True)
    # ValueError: a path with a null byte. RuntimeError: links in a circle, before Python 3.13.
    except (OSError, ValueError, RuntimeError):
        raise MelaError(
            f"{place}: expected the file {path!r} in {root}, got no such file; "
            "correct the path (relative to data.root, with '/'), or add the file"
        ) from None
    if not real.is_relative_to(root):
        raise MelaError(
            f"{place}: expected a file below data.root ({root}), got {path!r}, a link to {str(real)!r}; "
            "put a copy in its place"
        )
    if not real.is_file():
        raise MelaError(f"{place}: expected a file, got the folder {path!r}; write the path of an image")
    if not relative.suffix and not is_image(real):
        raise _no_image(path, place)
    return real.relative_to(root).as_posix()


def _no_image(path: str, place: str) -> MelaError:
    suffix = PurePosixPath(path).suffix.lower()
    why = f" ({why_unused(f'x{suffix}')})" if suffix in HEIF_SUFFIXES else ""
    return MelaError(
        f"{place}: expected the path of an image ({' '.join(suffixes())}), got {path!r}{why}; convert the file"
    )


def list_folders(root: Path, *, report: Report = refuse) -> pd.DataFrame:
    """List ``root/<task>/<local label>/<image>`` with the columns of `read_table`, without role and split."""
    real = root.resolve()
    cells = []
    for folder, names in walk_images(root, report=report):
        if folder.count("/") != 1:
            for path in (f"{folder}/{name}" if folder else name for name in names):
                report(
                    f"{root}: expected <task>/<local label>/<image>, got {path!r}; "
                    "move the file, or describe the tasks in a table and set data.table"
                )
            continue
        task, label = folder.split("/")
        for name in names:
            path = f"{folder}/{name}"
            file = real / path
            image = file.resolve().relative_to(real).as_posix() if file.is_symlink() else path
            cells.append((task, label, path, f"{root}, folder {folder!r}", image))
    return pd.DataFrame(cells, columns=[*REQUIRED, "place", "image"])


def check_tasks(rows: pd.DataFrame, *, folders: bool = False, report: Report = refuse) -> None:
    """Report contradictions between rows; messages name the row, or the task.

    Some task needs two local labels of two images. Where roles are given, such a label needs a support and a query
    image. A task names an image once. Where splits are given, a task and an image lie in one of them; where true
    classes are given, an image has one of them. A role or split that nobody knows, which `read_table` has told,
    counts for either.

    Parameters
    ----------
    rows : DataFrame
    folders : bool
        Whether the rows are from `list_folders`, where an image that is there twice is a link.
    report : callable
    """
    first = rows.groupby(["task_id", "image"], sort=False)[["path", "local_label"]].transform("first")
    both = rows.assign(other=first["path"], other_label=first["local_label"])
    for row in _each(both, rows.duplicated(["task_id", "image"])):
        again = f"expected an image once in task {row['task_id']!r}, got {row['path']!r} again; remove one of the rows"
        report(_again_in_folders(row) if folders else f"{row['place']}: {again}")
    if "split" in rows:
        _check_one_split(rows, "task_id", "task", report)
        _check_one_split(rows, "image", "image", report)
    if "source" in rows:
        for row in _unlike_the_first(rows, "task_id", "source"):
            report(
                f"{row['place']}: expected one source for all rows of task {row['task_id']!r}, got {row['source']!r} "
                f"after {row['first']!r}; give each task one source, or rename the column if it means something else"
            )
    if "class" in rows:
        for row in _unlike_the_first(rows, "image", "class"):
            report(
                f"{row['place']}: expected one class for all rows of image {row['path']!r}, got {row['class']!r} "
                f"after {row['first']!r}; give each image its true class, or rename the column if that is not it"
            )
    rest = is_rest(rows)
    if rest.all() and len(rows):
        report(
            f"{rows['place'].iloc[0]}: expected a task of two local labels with two images each, got none in "
            f"{count_of(rows['task_id'].nunique(), 'task')}; add labels or images"
        )
    rows, keys = rows[~rest], ["task_id", "local_label"]
    for role in ROLES if "role" in rows else ():
        may_be = (rows["role"] == role) | ~rows["role"].isin(ROLES)
        count = may_be.groupby([rows[key] for key in keys], sort=False).transform("sum")
        for row in _each(rows, count == 0, *keys):
            report(
                f"{row['place']}: expected at least one {role} image of local label {row['local_label']!r} in task "
                f"{row['task_id']!r}, got none; change a role, or remove that column to have roles drawn"
            )


def _again_in_folders(row: dict[str, Any]) -> str:
    """Return the error about a task that has an image twice, which takes a link."""
    link, other = (row["path"], row["other"]) if row["path"] != row["image"] else (row["other"], row["path"])
    if row["local_label"] == row["other_label"]:
        expected, todo = f"an image once in task {row['task_id']!r}", "remove the link"
    else:
        expected = f"an image under one label in task {row['task_id']!r}"
        todo = "keep it under the label that is right"
    return f"{row['place']}: expected {expected}, got {link!r}, a link to the same file as {other!r}; {todo}"


def labels_that_are_rest(count: int) -> str:
    """Return a line that says how many labels are `is_rest`."""
    labels = "label has" if count == 1 else "labels have"
    return (
        f"{count} {labels} a single image, or no other label beside it in the task; no task is learned from that, and "
        "its class is found when all others have one"
    )


def is_rest(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Tell for each row whether no task can be learned from its label: it has one image, or no other one beside it.

    Such labels get a class when all others have one. A label of one image cannot be both support and query, and a task
    needs two labels that can.
    """
    keys = ["task_id", "local_label"]
    few = rows.groupby(keys, sort=False)["image"].transform("size") < 2
    others = rows[~few].groupby("task_id")["local_label"].nunique()
    return few | (rows["task_id"].map(others).fillna(0) < 2)


def _unlike_the_first(rows: pd.DataFrame, key: str, column: str) -> Iterator[dict[str, Any]]:
    """Yield for each value of a key the first row whose column is not as in its first row, which is ``first``."""
    first = rows.groupby(key, sort=False)[column].transform("first")
    yield from _each(rows.assign(first=first), rows[column] != first, key)


def _check_one_split(rows: pd.DataFrame, column: str, name: str, report: Report) -> None:
    rows = rows[rows["split"].isin(SPLITS)]
    for row in _unlike_the_first(rows, column, "split"):
        report(
            f"{row['place']}: expected {name} {row[column]!r} in one split, got {row['split']!r} "
            f"after {row['first']!r}; use one split for all of its rows"
        )
