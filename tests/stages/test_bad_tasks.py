"""What is wrong with a table of tasks ends in one line that says what to do about it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from mela.params import PARAMS
from tests.helpers.bad_input import Case, Spoil, cell, one_line_each, picture
from tests.helpers.project import change

Content = Callable[[pd.DataFrame], pd.DataFrame | str | bytes]
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


def tasks(content: Content, *, suffix: str = "csv") -> Spoil:
    """Two tasks of eight images in a table, and what is wrong with it."""

    def prepare() -> None:
        for number in range(8):
            picture(f"{number}.png", seed=number)
        change(PARAMS, {"data.name": "tasks", "data.root": "mine", "data.table": f"tasks.{suffix}"})
        found, path = content(pd.DataFrame(ROWS, columns=list(COLUMNS))), Path(f"mine/tasks.{suffix}")
        if isinstance(found, pd.DataFrame):
            found.to_csv(path, index=False) if suffix == "csv" else found.to_parquet(path)
        else:
            path.write_bytes(found.encode() if isinstance(found, str) else found)

    return prepare


def wrong(content: Content, message: str, *, suffix: str = "csv") -> Case:
    """What is wrong with the table, and what follows the name of the table in the message."""
    return Case("images", tasks(content, suffix=suffix), f"mine/tasks.{suffix}{message}")


def bad_cell(row: int, column: str, value: Any, message: str) -> Case:
    """A cell that is wrong, and what is said of its line."""
    return wrong(cell(row, column, value), f", line {row + 2}: {message}")


def bad_labels(labels: list[Any], first: str) -> Case:
    """Local labels of another type, in a table that keeps types."""
    message = f", row 1: expected text or an integer as local_label, got {first}; convert the column"
    return wrong(lambda rows: rows.assign(local_label=labels), message, suffix="parquet")


NO_TASK = ", line 2: expected a task of two local labels with two images each, got none in 2 tasks; .*"
BELOW, RELATIVE = r"expected a path below data.root \(.*\)", "write it relative .*"
CASES: dict[str, Case] = {
    "no column of labels": wrong(
        lambda rows: rows.drop(columns="local_label"),
        ": expected the column 'local_label', got 'task_id', 'path', 'role'; add the column",
    ),
    "a column twice": wrong(
        lambda rows: "task_id,task_id,local_label,path\na,a,b,0.png\n",
        ": expected every column once, got .*; remove one 'task_id'",
    ),
    "no rows": wrong(lambda rows: rows[:0], ": expected one row per task and image, got an empty table; add rows"),
    "an empty file": wrong(lambda rows: "", ": expected the column 'task_id', got no header;.*"),
    "one local label in every task": wrong(lambda rows: rows[rows["local_label"].isin(["cat", "x"])], NO_TASK),
    "one image of a label in every task": wrong(lambda rows: rows.drop(index=[3, 7]), NO_TASK),
    "no query image": wrong(
        cell(1, "role", "support"),
        ", line 2: expected at least one query image of local label 'cat' in task 'a', got none; .*",
    ),
    "an unknown role": bad_cell(1, "role", "test", "expected the role support or query, got 'test'; correct it"),
    "an empty cell": bad_cell(
        1, "local_label", "", "expected a local_label, got an empty cell; fill it or remove the row"
    ),
    "the same image twice": bad_cell(
        1, "path", "./0.png", "expected an image once in task 'a', got './0.png' again; remove one of the rows"
    ),
    "an image in two splits": wrong(
        lambda rows: cell(4, "path", "0.png")(rows.assign(split=["train"] * 4 + ["test"] * 4)),
        ", line 6: expected image '0.png' in one split, got 'test' after 'train'; use one split .*",
    ),
    "a task in two splits": wrong(
        lambda rows: rows.assign(split=["train", "test"] * 4),
        ", line 3: expected task 'a' in one split, got 'test' after 'train'; use one split .*",
    ),
    "no training tasks": wrong(
        lambda rows: rows.assign(split="test"), ": expected tasks in the split 'train', got none; add them"
    ),
    "a path that is not there": bad_cell(
        2, "path", "9.png", "expected the file '9.png' in .*mine, got no such file; correct the path .*"
    ),
    "a path that leaves the root": bad_cell(2, "path", "../mine/2.png", f"{BELOW}, got '../mine/2.png'; {RELATIVE}"),
    "an absolute path": bad_cell(2, "path", "/etc/2.png", f"{BELOW}, got '/etc/2.png'; {RELATIVE}"),
    "a Windows path": bad_cell(2, "path", "C:\\2.png", f"{BELOW}, got 'C:.*2.png'; {RELATIVE}"),
    "a path with a null byte": bad_cell(2, "path", "2\0.png", r"expected .*"),
    "no image": bad_cell(
        2, "path", "tasks.csv", r"expected the path of an image \(.*\), got 'tasks.csv'; convert the file"
    ),
    "a folder for an image": Case(
        "images",
        lambda: (tasks(cell(2, "path", "9.png"))(), Path("mine/9.png").mkdir()),
        "mine/tasks.csv, line 4: expected a file, got the folder '9.png'; write the path of an image",
    ),
    "text in another encoding": wrong(
        lambda rows: "task_id,local_label,path\né,b,0.png\n".encode("latin-1"),
        ", line 2: expected text in UTF-8, got .*; save it as UTF-8",
    ),
    "a spreadsheet": Case(
        "images",
        tasks(lambda rows: rows.to_csv(), suffix="xlsx"),
        "data.table: expected a file .csv, .tsv or .parquet, got 'mine/tasks.xlsx'; set data.table",
    ),
    "no parquet file": Case(
        "images",
        tasks(lambda rows: rows.to_csv(), suffix="parquet"),
        "data.table: expected a Parquet file at mine/tasks.parquet, got .*; set data.table",
    ),
    "labels that are fractions": bad_labels([0.5, 0.5, 1, 1, 2, 2, 3, 3], "0.5"),
    "labels that are lists": bad_labels([["cat"]] * 8, r"\['cat'\]"),
    "labels of mixed types": bad_labels([True] * 8, "True"),
}


test_what_is_bad_ends_in_one_line = one_line_each(CASES)
