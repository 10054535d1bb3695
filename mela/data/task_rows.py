"""One row per (task, image), as text: read from a table or from folders, and checked."""

from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from mela.data.files import IMAGE_SUFFIXES, walk_images
from mela.data.source import ROLES, SPLITS
from mela.data.tables import parse_csv, read_text, require_columns
from mela.errors import MelaError

REQUIRED = ("task_id", "local_label", "path")
OPTIONAL = ("role", "split")


def read_table(table: Path, root: Path) -> pd.DataFrame:
    """Read a CSV or Parquet file of tasks.

    Returns
    -------
    DataFrame
        Columns of text ``task_id``, ``local_label``, ``path``, perhaps ``role`` and ``split``; ``place``, what messages
        call the row (a CSV line, the header being line 1, or a Parquet row, the first being row 1); ``image``, the real
        path below `root`, the same wherever the same file is meant.

    Raises
    ------
    MelaError
        One line that names the file and, where there is one, the row.
    """
    suffix = table.suffix.lower()
    if suffix == ".csv":
        rows = _read_csv(table)
    elif suffix == ".parquet":
        rows = _read_parquet(table)
    else:
        raise MelaError(f"data.table: expected a file .csv or .parquet, got {str(table)!r}; set data.table")
    if rows.empty:
        raise MelaError(f"{table}: expected one row per task and image, got an empty table; add rows")
    _check_cells(rows)
    real = root.resolve()
    paths = rows.drop_duplicates("path")
    images = {path: _locate(real, path, place) for path, place in zip(paths["path"], paths["place"], strict=True)}
    rows["image"] = rows["path"].map(images)
    return rows


def _read_csv(table: Path) -> pd.DataFrame:
    text = parse_csv(read_text(table, "data.table"), where=str(table), required=REQUIRED)
    columns = {name: text.columns[name] for name in (*REQUIRED, *OPTIONAL) if name in text.columns}
    return pd.DataFrame({**columns, "place": [f"{table}, line {line}" for line in text.lines]})


def _read_parquet(table: Path) -> pd.DataFrame:
    try:
        header = pq.read_schema(table).names
        require_columns(header, where=str(table), required=REQUIRED)
        content = pq.read_table(table, columns=[name for name in (*REQUIRED, *OPTIONAL) if name in header])
        cells = {name: content[name].to_pylist() for name in content.column_names}
    # UnicodeDecodeError: text that is no UTF-8
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise MelaError(f"data.table: expected a Parquet file at {table}, got {reason}; set data.table") from error
    columns = {
        name: [_as_text(cell, f"{table}, row {i}", name) for i, cell in enumerate(column, start=1)]
        for name, column in cells.items()
    }
    return pd.DataFrame({**columns, "place": [f"{table}, row {i}" for i in range(1, content.num_rows + 1)]})


def _as_text(cell: object, place: str, column: str) -> str:
    if cell is None:
        return ""
    if isinstance(cell, str | int) and not isinstance(cell, bool):
        return str(cell)
    raise MelaError(f"{place}: expected text or an integer as {column}, got {cell!r}; convert the column")


def _check_cells(rows: pd.DataFrame) -> None:
    for column in rows.columns.drop("place"):
        if (row := _first(rows, rows[column].str.strip() == "")) is not None:
            raise MelaError(f"{row['place']}: expected a {column}, got an empty cell; fill it or remove the row")
    for column, known in (("role", ROLES), ("split", SPLITS)):
        if column in rows and (row := _first(rows, ~rows[column].isin(known))) is not None:
            choices = " or ".join(known)
            raise MelaError(f"{row['place']}: expected the {column} {choices}, got {row[column]!r}; correct it")


def _first(rows: pd.DataFrame, wrong: "pd.Series[bool]") -> "pd.Series[Any] | None":
    """The first row that is wrong."""
    return rows[wrong].iloc[0] if wrong.any() else None


def _locate(root: Path, path: str, place: str) -> str:
    """The real path of an image relative to `root`, itself a real path."""
    relative = PurePosixPath(path)
    if relative.suffix.lower() not in IMAGE_SUFFIXES:
        suffixes = " ".join(sorted(IMAGE_SUFFIXES))
        raise MelaError(f"{place}: expected the path of an image ({suffixes}), got {path!r}; convert the file")
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
    return real.relative_to(root).as_posix()


def list_folders(root: Path) -> pd.DataFrame:
    """List ``root/<task>/<local label>/<image>`` with the columns of `read_table`, without role and split."""
    real = root.resolve()
    cells = []
    for folder, names in walk_images(root):
        if folder.count("/") != 1:
            got = f"{folder}/{names[0]}" if folder else names[0]
            raise MelaError(
                f"{root}: expected <task>/<local label>/<image>, got {got!r}; "
                "move the file, or describe the tasks in a table and set data.table"
            )
        task, label = folder.split("/")
        for name in names:
            path = f"{folder}/{name}"
            file = real / path
            image = file.resolve().relative_to(real).as_posix() if file.is_symlink() else path
            cells.append((task, label, path, f"{root}, folder {folder!r}", image))
    return pd.DataFrame(cells, columns=[*REQUIRED, "place", "image"])


def check_tasks(rows: pd.DataFrame) -> None:
    """Raise MelaError unless the rows make sense together; messages name the row, or the task.

    Every task needs two local labels, every local label of a task two images, one of them support and one query where
    roles are given. A task names an image once. Where splits are given, a task and an image lie in one of them.
    """
    if (row := _first(rows, rows.duplicated(["task_id", "image"]))) is not None:
        raise MelaError(
            f"{row['place']}: expected an image once in task {row['task_id']!r}, got {row['path']!r} again; "
            "remove one of the rows"
        )
    if "split" in rows:
        _check_one_split(rows, "task_id", "task")
        _check_one_split(rows, "image", "image")
    labels = rows.groupby("task_id", sort=False)["local_label"].transform("nunique")
    if (row := _first(rows, labels < 2)) is not None:
        raise MelaError(
            f"{row['place']}: expected at least two local labels in task {row['task_id']!r}, "
            f"got only {row['local_label']!r}; add another, or remove the task"
        )
    keys = ["task_id", "local_label"]
    if (row := _first(rows, rows.groupby(keys, sort=False)["image"].transform("size") < 2)) is not None:
        raise MelaError(
            f"{row['place']}: expected at least two images of {_class_of(row)}, got one; "
            "add images, or remove the label"
        )
    for role in ROLES if "role" in rows else ():
        count = (rows["role"] == role).groupby([rows[key] for key in keys], sort=False).transform("sum")
        if (row := _first(rows, count == 0)) is not None:
            raise MelaError(
                f"{row['place']}: expected at least one {role} image of {_class_of(row)}, got none; "
                "change a role, or remove that column to have roles drawn"
            )


def _check_one_split(rows: pd.DataFrame, column: str, name: str) -> None:
    first = rows.groupby(column, sort=False)["split"].transform("first")
    if (row := _first(rows.assign(first=first), rows["split"] != first)) is not None:
        raise MelaError(
            f"{row['place']}: expected {name} {row[column]!r} in one split, got {row['split']!r} "
            f"after {row['first']!r}; use one split for all of its rows"
        )


def _class_of(row: "pd.Series[Any]") -> str:
    return f"local label {row['local_label']!r} in task {row['task_id']!r}"
