"""What is wrong with a table of tasks ends in one line that says what to do about it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from mela.params import PARAMS
from tests.helpers.bad_input import Case, Spoil, one_line_each, picture
from tests.helpers.project import change

ROWS = [
    ("a", "cat", "0.png", "support"),
    ("a", "cat", "1.png", "query"),
    ("a", "dog", "2.png", "support"),
    ("a", "dog", "3.png", "query"),
    ("b", "x", "4.png", "support"),
    ("b", "x", "5.png", "query"),
    ("b", "y", "6.png", "support"),
    ("b", "y", "7.png", "query"),
]
COLUMNS = ("task_id", "local_label", "path", "role")


def tasks(change_rows: Callable[[pd.DataFrame], pd.DataFrame | str | bytes], *, suffix: str = "csv") -> Spoil:
    """Two tasks of eight images in a table, and what is wrong with it."""

    def prepare() -> None:
        for number in range(8):
            picture(f"{number}.png", seed=number)
        change(PARAMS, {"data.name": "tasks", "data.root": "mine", "data.table": f"tasks.{suffix}"})
        found, path = change_rows(pd.DataFrame(ROWS, columns=list(COLUMNS))), Path(f"mine/tasks.{suffix}")
        if isinstance(found, pd.DataFrame):
            found.to_csv(path, index=False) if suffix == "csv" else found.to_parquet(path)
        else:
            path.write_bytes(found.encode() if isinstance(found, str) else found)

    return prepare


def cell(row: int, column: str, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Change one cell."""

    def changed(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[row, column] = value
        return rows

    return changed


CASES: dict[str, Case] = {
    "no column of labels": (
        "images",
        tasks(lambda rows: rows.drop(columns="local_label")),
        "mine/tasks.csv: expected the column 'local_label', got 'task_id', 'path', 'role'; add the column",
    ),
    "a column twice": (
        "images",
        tasks(lambda rows: "task_id,task_id,local_label,path\na,a,b,0.png\n"),
        "mine/tasks.csv: expected every column once, got .*; remove one 'task_id'",
    ),
    "no rows": (
        "images",
        tasks(lambda rows: rows[:0]),
        "mine/tasks.csv: expected one row per task and image, got an empty table; add rows",
    ),
    "an empty file": (
        "images",
        tasks(lambda rows: ""),
        "mine/tasks.csv: expected the column 'task_id', got no header;.*",
    ),
    "one local label in every task": (
        "images",
        tasks(lambda rows: rows[rows["local_label"].isin(["cat", "x"])]),
        "mine/tasks.csv, line 2: expected a task of two local labels with two images each, got none in 2 tasks; .*",
    ),
    "one image of a label in every task": (
        "images",
        tasks(lambda rows: rows.drop(index=[3, 7])),
        "mine/tasks.csv, line 2: expected a task of two local labels with two images each, got none in 2 tasks; .*",
    ),
    "no query image": (
        "images",
        tasks(cell(1, "role", "support")),
        "mine/tasks.csv, line 2: expected at least one query image of local label 'cat' in task 'a', got none; .*",
    ),
    "an unknown role": (
        "images",
        tasks(cell(1, "role", "test")),
        "mine/tasks.csv, line 3: expected the role support or query, got 'test'; correct it",
    ),
    "an empty cell": (
        "images",
        tasks(cell(1, "local_label", "")),
        "mine/tasks.csv, line 3: expected a local_label, got an empty cell; fill it or remove the row",
    ),
    "the same image twice": (
        "images",
        tasks(cell(1, "path", "./0.png")),
        "mine/tasks.csv, line 3: expected an image once in task 'a', got './0.png' again; remove one of the rows",
    ),
    "an image in two splits": (
        "images",
        tasks(lambda rows: cell(4, "path", "0.png")(rows.assign(split=["train"] * 4 + ["test"] * 4))),
        "mine/tasks.csv, line 6: expected image '0.png' in one split, got 'test' after 'train'; use one split .*",
    ),
    "a task in two splits": (
        "images",
        tasks(lambda rows: rows.assign(split=["train", "test"] * 4)),
        "mine/tasks.csv, line 3: expected task 'a' in one split, got 'test' after 'train'; use one split .*",
    ),
    "no training tasks": (
        "images",
        tasks(lambda rows: rows.assign(split="test")),
        "mine/tasks.csv: expected tasks in the split 'train', got none; add them",
    ),
    "a path that is not there": (
        "images",
        tasks(cell(2, "path", "9.png")),
        "mine/tasks.csv, line 4: expected the file '9.png' in .*mine, got no such file; correct the path .*",
    ),
    "a path that leaves the root": (
        "images",
        tasks(cell(2, "path", "../mine/2.png")),
        r"mine/tasks.csv, line 4: expected a path below data.root \(.*\), got '../mine/2.png'; write it relative .*",
    ),
    "an absolute path": (
        "images",
        tasks(cell(2, "path", "/etc/2.png")),
        r"mine/tasks.csv, line 4: expected a path below data.root \(.*\), got '/etc/2.png'; write it relative .*",
    ),
    "a Windows path": (
        "images",
        tasks(cell(2, "path", "C:\\2.png")),
        r"mine/tasks.csv, line 4: expected a path below data.root \(.*\), got 'C:.*2.png'; write it relative .*",
    ),
    "a path with a null byte": (
        "images",
        tasks(cell(2, "path", "2\0.png")),
        r"mine/tasks.csv, line 4: expected .*",
    ),
    "no image": (
        "images",
        tasks(cell(2, "path", "tasks.csv")),
        r"mine/tasks.csv, line 4: expected the path of an image \(.*\), got 'tasks.csv'; convert the file",
    ),
    "a folder for an image": (
        "images",
        lambda: (tasks(cell(2, "path", "9.png"))(), Path("mine/9.png").mkdir()),
        "mine/tasks.csv, line 4: expected a file, got the folder '9.png'; write the path of an image",
    ),
    "text in another encoding": (
        "images",
        tasks(lambda rows: "task_id,local_label,path\né,b,0.png\n".encode("latin-1")),
        "mine/tasks.csv, line 2: expected text in UTF-8, got .*; save it as UTF-8",
    ),
    "a spreadsheet": (
        "images",
        tasks(lambda rows: rows.to_csv(), suffix="xlsx"),
        "data.table: expected a file .csv, .tsv or .parquet, got 'mine/tasks.xlsx'; set data.table",
    ),
    "no parquet file": (
        "images",
        tasks(lambda rows: rows.to_csv(), suffix="parquet"),
        "data.table: expected a Parquet file at mine/tasks.parquet, got .*; set data.table",
    ),
    "labels that are fractions": (
        "images",
        tasks(lambda rows: rows.assign(local_label=[0.5, 0.5, 1, 1, 2, 2, 3, 3]), suffix="parquet"),
        "mine/tasks.parquet, row 1: expected text or an integer as local_label, got 0.5; convert the column",
    ),
    "labels that are lists": (
        "images",
        tasks(lambda rows: rows.assign(local_label=[["cat"]] * 8), suffix="parquet"),
        r"mine/tasks.parquet, row 1: expected text or an integer as local_label, got \['cat'\]; convert the column",
    ),
    "labels of mixed types": (
        "images",
        tasks(lambda rows: rows.assign(local_label=[True] * 8), suffix="parquet"),
        "mine/tasks.parquet, row 1: expected text or an integer as local_label, got True; convert the column",
    ),
}


test_what_is_bad_ends_in_one_line = one_line_each(CASES)
