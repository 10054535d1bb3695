"""What is wrong with parameters, data, tasks, files or the machine ends in one line that says what to do about it.

A case is a stage, what spoils its input, and the message as a regular expression, whole. The stage ends with status 1,
writes this line and no other, and every file is as it was.
"""

import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, change, run_stages
from PIL import Image

from mela import store
from mela.params import PARAMS
from stages import paths

Spoil = Callable[[], Any]
Case = tuple[str, Spoil, str]
RERUN = "rerun the stage that makes it"


def fails(stage: str, message: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Run a stage as its script does."""
    module = import_module(f"stages.{stage}")
    start = getattr(module, "run_shared", None) or module.run
    before = contents()
    monkeypatch.setattr(sys, "argv", [f"stages/{stage}.py"])
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        start(module.main)
    said = capfd.readouterr().err
    assert re.fullmatch(f"error: {message}\n", said), said
    assert ended.value.code == 1
    assert contents() == before


def contents() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}


def params(**changes: Any) -> Spoil:
    """Change values, named block__key."""
    return lambda: change(PARAMS, {name.replace("__", "."): value for name, value in changes.items()})


def edit(old: str, new: str) -> Spoil:
    """Change the text of the parameters."""

    def spoil() -> None:
        text = PARAMS.read_text(encoding="utf-8")
        assert text.count(old) == 1, old
        PARAMS.write_text(text.replace(old, new), encoding="utf-8")

    return spoil


def cut(path: Path, size: int) -> Spoil:
    return lambda: path.write_bytes(path.read_bytes()[:size])


def table(path: Path, schema: pa.Schema, **columns: Any) -> Spoil:
    """A table in place of one that a stage wrote; columns are functions of those that are there, or values."""

    def spoil() -> None:
        found = pd.read_parquet(path)
        for name, value in columns.items():
            found[name] = value(found) if callable(value) else value
        store.write_table(path, found, schema, stage="test", params={})

    return spoil


BAD_PARAMS: dict[str, Case] = {
    "unknown key": ("label", params(labeler__kew=1), "params.yaml: labeler.kew: unknown key; remove it or correct .*"),
    "missing key": (
        "label",
        edit("  q: 6.5", "  # q: 6.5"),
        "params.yaml: labeler.q: missing; expected a value",
    ),
    "unknown block": (
        "label",
        edit("labeler:", "labeller:"),
        r"params.yaml: labeller: unknown block; expected one of augment, .*",
    ),
    "missing block": (
        "label",
        lambda: PARAMS.write_text("data:\n  name: glyphs\n"),
        "params.yaml: labeler: expected this block, found only data",
    ),
    "empty file": ("label", lambda: PARAMS.write_text(""), "params.yaml: expected blocks such as `labeler:`, got .*"),
    "a list": ("label", lambda: PARAMS.write_text("- 1\n"), "params.yaml: expected blocks such as `labeler:`, got .*"),
    "text for a number": (
        "embed",
        params(embed__epochs="ten"),
        "params.yaml: embed.epochs: input should be a valid integer, got 'ten'",
    ),
    "a boolean for a number": (
        "embed",
        params(embed__epochs=True),
        "params.yaml: embed.epochs: input should be a valid integer, got True",
    ),
    "a number for a boolean": (
        "label",
        params(labeler__merge=1),
        "params.yaml: labeler.merge: input should be a valid boolean, got 1",
    ),
    "a fraction for an integer": (
        "pretrain",
        params(pretrain__batch_size=64.5),
        "params.yaml: pretrain.batch_size: input should be a valid integer.*, got 64.5",
    ),
    "null": (
        "pretrain",
        params(pretrain__batch_size=None),
        "params.yaml: pretrain.batch_size: input should be a valid integer, got None",
    ),
    "below the range": (
        "label",
        params(labeler__q=-1.0),
        "params.yaml: labeler.q: input should be greater than or equal to 0, got -1.0",
    ),
    "a number without end": (
        "manifest",
        params(tasks__train=10**20),
        "params.yaml: tasks.train: input should be less than or equal to 1000000000, got 1000+",
    ),
    "a rate beyond float32": (
        "embed",
        params(embed__learning_rate=1e300),
        r"params.yaml: embed.learning_rate: input should be less than or equal to 10{30}, got 1e\+300",
    ),
    "blocks within blocks": (
        "label",
        lambda: PARAMS.write_text("a: " + "[" * 3000),
        "params.yaml: expected YAML, got .*",
    ),
    "a boolean that is none": (
        "label",
        edit("  q: 6.5", "  q: !!bool x"),
        "params.yaml: expected YAML, got 'x'",
    ),
    "not a number": (
        "embed",
        params(embed__learning_rate=float("nan")),
        "params.yaml: embed.learning_rate: input should be .*, got nan",
    ),
    "infinite": (
        "embed",
        params(embed__ridge=float("inf")),
        "params.yaml: embed.ridge: input should be a finite number, got inf",
    ),
    "a seed of too many digits": (
        "embed",
        params(embed__seed=2**40),
        "params.yaml: embed.seed: input should be less than 4294967296, got 1099511627776",
    ),
    "unknown backbone": (
        "embed",
        params(model__backbone="vgg"),
        "params.yaml: model.backbone: expected conv4, resnet12 or timm:<name>, got 'vgg'",
    ),
    "unknown labels": (
        "pretrain",
        params(pretrain__labels="truth"),
        "params.yaml: pretrain.labels: input should be .*, got 'truth'",
    ),
    "unknown device": (
        "extract",
        params(runtime__device="gpu"),
        "params.yaml: runtime.device: string should match pattern .*, got 'gpu'",
    ),
    "no such GPU": (
        "extract",
        params(runtime__device="cuda:99"),
        r"runtime.device: expected a device of this machine \(\d+ CUDA devices\), got cuda:99; use auto or cpu, .*",
    ),
    "milestones beyond the epochs": (
        "embed",
        params(embed__milestones=[1, 9]),
        r"params.yaml: embed: milestones: expected epochs below epochs=2, got \[1, 9\]",
    ),
    "milestones that fall": (
        "pretrain",
        params(pretrain__milestones=[2, 1], pretrain__epochs=5),
        r"params.yaml: pretrain: milestones: expected rising epochs, got \[2, 1\]",
    ),
    "mean without deviation": (
        "embed",
        params(model__mean=[0.5]),
        "params.yaml: model: mean, std: expected both or neither to be null; .*",
    ),
    "means of other channels": (
        "embed",
        params(model__mean=[0.5] * 3, model__std=[0.5] * 3),
        "model.mean, model.std: expected 1 numbers each, one per channel of the images, got 3 and 3; .*",
    ),
    "a deviation of 0": (
        "embed",
        params(model__mean=[0.5], model__std=[0.0]),
        "params.yaml: model.std.0: input should be greater than 0, got 0.0",
    ),
    "fractions that sum to more": (
        "images",
        params(data__split_fractions=[0.9, 0.2, 0.2]),
        r"params.yaml: data: split_fractions: expected three numbers \(.*\) that sum to 1, got \[0.9, 0.2, 0.2\]",
    ),
    "no training share": (
        "images",
        params(data__split_fractions=[0.0, 0.5, 0.5]),
        "params.yaml: data: split_fractions: expected a training share above 0, got .*",
    ),
    "all tasks, with replacement": (
        "manifest",
        params(tasks__train=None, tasks__replacement=True),
        "params.yaml: tasks: train: expected a number of tasks, got null; null means all that .*",
    ),
    "more tasks than there are": (
        "manifest",
        params(tasks__train=100_000, tasks__replacement=False),
        r"tasks.train: expected at most 16 tasks without replacement \(.*\), got 100000; lower it or set .*",
    ),
    "ways above classes": (
        "manifest",
        params(tasks__ways=81),
        "tasks.ways: expected at most 80, the number of train classes, got 81",
    ),
    "more images than a class has": (
        "manifest",
        params(tasks__queries=16),
        r"tasks.shots \+ tasks.queries: expected at most 20, the images of train class '.*', got 21",
    ),
    "more tasks an epoch than there are": (
        "embed",
        params(embed__tasks_per_epoch=81),
        "embed.tasks_per_epoch: expected at most 80, the number of training tasks, got 81; lower it, or null takes all",
    ),
    "more parts than tasks": (
        "embed",
        params(embed__accumulate=2),
        "embed.tasks_per_step: expected 2 tasks or more in every step, .* got 1; raise it, .*",
    ),
    "more parts than images": (
        "pretrain",
        params(pretrain__accumulate=40, pretrain__batch_size=16),
        "pretrain.batch_size: expected 40 images or more in every step, .* got 16; raise it, .*",
    ),
    "more clusters than task classes": (
        "label",
        params(labeler__merge=False, labeler__n_clusters=500),
        "labeler.n_clusters: expected at most 400, the number of task classes, got 500.*",
    ),
    "pruned away": (
        "label",
        params(labeler__merge=False, labeler__guard=False, labeler__min_count=1000),
        "labeler.q: pass 1 would leave 0 of 120 clusters, fewer than the 5 ways of task .*",
    ),
    "classes that are too rare": (
        "label",
        params(labeler__min_count=1000),
        "labeler.merge: found .* the 5 ways of task .*; train the embedding longer, .*",
    ),
    "a training that diverges": (
        "pretrain",
        params(pretrain__learning_rate=1e30),
        r"pretrain: epoch 1, step \d+: expected a finite loss, got (nan|inf); lower pretrain.learning_rate .*",
    ),
    "an embedding that diverges": (
        "embed",
        params(embed__learning_rate=1e30),
        "(embed: epoch 1, step .*: expected a finite loss|embed: task .*: ridge: expected a positive definite).*",
    ),
    "no iterations to converge in": (
        "evaluate",
        params(evaluate__max_iter=1, evaluate__C=1e6),
        r"evaluate.max_iter: task \d+, 1_shot.*: logistic regression did not converge in 1 iterations .*; raise it",
    ),
    "no file": (
        "embed",
        lambda: PARAMS.unlink(),
        "params.yaml: no such file; run from the project's root, or write it with `mela preset glyphs`",
    ),
    "a folder": (
        "label",
        lambda: (PARAMS.unlink(), PARAMS.mkdir()),
        "params.yaml: Is a directory; move what is there away",
    ),
    "no YAML": (
        "label",
        lambda: PARAMS.write_text("labeler: {q: [1\n"),
        "params.yaml: expected YAML, got .*",
    ),
    "a key twice": (
        "label",
        edit("  q: 6.5", "  q: 6.5\n  q: 5.5"),
        'params.yaml: expected YAML, got .*duplicate key "q".*',
    ),
    "no UTF-8": (
        "label",
        lambda: PARAMS.write_bytes("labeler: {q: é}".encode("latin-1")),
        "params.yaml: expected text in UTF-8, got .*; save it as UTF-8",
    ),
    "a Python object": (
        "label",
        lambda: PARAMS.write_text("labeler: !!python/object/apply:os.system [exit]\n"),
        "params.yaml: expected YAML, got .*",
    ),
}


def picture(path: str, *, seed: int = 0, mode: str = "L", **options: Any) -> Path:
    """Write a picture."""
    shape = (20, 24) if mode in ("L", "I;16", "F", "P") else (20, 24, len(mode))
    values = np.random.default_rng(seed).integers(0, 255, shape)
    kind = {"I;16": np.uint16, "F": np.float32}.get(mode, np.uint8)
    target = Path("mine") / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if mode == "I;16":
        values *= 257
    Image.fromarray(values.astype(kind), None if mode in ("I;16", "F") else mode).save(target, **options)
    return target


def folders(spoil: Spoil = lambda: None, **changes: Any) -> Spoil:
    """Images of six classes in folders, and what is wrong with them."""

    def prepare() -> None:
        for number in range(6):
            for drawing in range(4):
                picture(f"class {number}/{drawing}.png", seed=10 * number + drawing)
        change(PARAMS, {"data.name": "folder", "data.root": "mine"})
        params(**changes)()
        spoil()

    return prepare


def huge() -> None:
    """A PNG of a few bytes that says it has 40,000 x 40,000 pixels."""
    picture("class 0/0.png")
    content = bytearray(Path("mine/class 0/0.png").read_bytes())
    content[16:24] = struct.pack(">II", 40_000, 40_000)
    import zlib

    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    Path("mine/class 0/0.png").write_bytes(content)


def replaced(content: bytes) -> Spoil:
    return lambda: Path("mine/class 0/0.png").write_bytes(content)


def animated() -> None:
    frames = [Image.new("L", (20, 20), shade) for shade in (0, 90, 200)]
    frames[0].save("mine/class 0/0.gif", save_all=True, append_images=frames[1:])


def split_table(text: str) -> Spoil:
    return lambda: (Path("mine/split.csv").write_text(text), change(PARAMS, {"data.table": "split.csv"}))


UNREADABLE = "image 'class 0/0.png': expected a readable image, got .*; replace the file"
BAD_DATA: dict[str, Case] = {
    "no folder": (
        "images",
        params(data__name="folder", data__root="nowhere"),
        "data.root: expected a folder at nowhere, got nothing; set data.root to the folder of images",
    ),
    "a file for a folder": (
        "images",
        params(data__name="folder", data__root="params.yaml"),
        "data.root: expected a folder at params.yaml, got a file; set data.root .*",
    ),
    "no benchmark": (
        "images",
        params(data__name="cifar_fs", data__root="nowhere"),
        "data.root: expected .*nowhere.*",
    ),
    "an empty folder": (
        "images",
        folders(lambda: Path("mine/class 7").mkdir()),
        r".*mine: expected at least one image \(.*\) in folder 'class 7', got none; add images or remove the folder",
    ),
    "an image in no folder": (
        "images",
        folders(lambda: picture("0.png")),
        ".*mine: expected one folder per class, got the image '0.png' in no folder; move it .*",
    ),
    "a truncated image": ("images", folders(cut(Path("mine/class 0/0.png"), 200)), UNREADABLE),
    "an empty file": ("images", folders(replaced(b"")), UNREADABLE),
    "text": ("images", folders(replaced(b"hello")), UNREADABLE),
    "random bytes": ("images", folders(replaced(np.random.default_rng(0).bytes(500))), UNREADABLE),
    "a PNG's head alone": ("images", folders(replaced(b"\x89PNG\r\n\x1a\n")), UNREADABLE),
    "an animation": (
        "images",
        folders(animated),
        "image 'class 0/0.gif': expected a still image, got 3 frames; keep one of them",
    ),
    "32 bits a channel": (
        "images",
        folders(lambda: picture("class 0/9.tif", mode="F")),
        "image 'class 0/9.tif': expected 8 or 16 bits per channel, got 32; save it with 8",
    ),
    "a decompression bomb": (
        "images",
        folders(huge),
        "image 'class 0/0.png': expected .*40000.*|.*1600000000 pixels.*",
    ),
    "a link that leads out": (
        "images",
        folders(lambda: Path("mine/class 0/9.png").symlink_to(PARAMS.resolve())),
        ".*mine: expected links that stay below this folder, got 'class 0/9.png' -> '.*params.yaml'; put a copy .*",
    ),
    "a folder that is a link": (
        "images",
        folders(lambda: Path("mine/class 9").symlink_to(Path("mine/class 0").resolve())),
        ".*mine: expected real folders, got the symbolic link 'class 9'; put a copy in its place",
    ),
    "a name that is no UTF-8": (
        "images",
        folders(lambda: Path(os.fsdecode(b"mine/class 0/\xff.png")).write_bytes(b"")),
        r".*mine: expected file names in UTF-8, got 'class 0/\\udcff.png'; rename it",
    ),
    "a name with a line break": (
        "images",
        folders(lambda: Path("mine/class 0/a\nb.png").write_bytes(b"")),
        r"image 'class 0/a\\nb.png': expected a readable image, got .*; replace the file",
    ),
    "a table that leaves the root": (
        "images",
        folders(data__table="../split.csv"),
        "params.yaml: data: table: expected a path below data.root, got '../split.csv'",
    ),
    "a table that is not there": (
        "images",
        folders(data__table="split.csv"),
        "data.table: expected a readable file at mine/split.csv, got No such file or directory; set data.table",
    ),
    "a split that nobody knows": (
        "images",
        folders(split_table("split,class\ntraining,class 0\n")),
        "mine/split.csv, line 2: expected the split train or val or test, got 'training'; correct it",
    ),
    "a class that is not there": (
        "images",
        folders(split_table("split,class\ntrain,class 0\ntrain,class 8\n")),
        "mine/split.csv: expected the folder 'class 8' with images in mine, got none; .*",
    ),
    "a class in two splits": (
        "images",
        folders(split_table("split,class\ntrain,class 0\ntest,class 0\n")),
        "mine/split.csv, line 3: expected every class once, got 'class 0' again; remove the row",
    ),
    "no training classes": (
        "images",
        folders(split_table("split,class\ntest,class 0\n")),
        "mine/split.csv: expected classes in the split 'train', got none; add them",
    ),
    "a row that is too short": (
        "images",
        folders(split_table("split,class\ntrain\n")),
        "mine/split.csv, line 2: expected 2 cells as in the header, got 1; .*",
    ),
    "a quote that does not end": (
        "images",
        folders(split_table('split,class\ntrain,"class 0\n')),
        "mine/split.csv, line 2: expected comma-separated values, got .*; fix it",
    ),
}
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


BAD_TASKS: dict[str, Case] = {
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
    "one local label": (
        "images",
        tasks(lambda rows: rows[rows["local_label"] != "dog"]),
        "mine/tasks.csv, line 2: expected at least two local labels in task 'a', got only 'cat'; .*",
    ),
    "one image of a label": (
        "images",
        tasks(lambda rows: rows.drop(index=3)),
        "mine/tasks.csv, line 4: expected at least two images of local label 'dog' in task 'a', got one; .*",
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
        "mine/tasks.csv: expected text in UTF-8, got .*; save it as UTF-8",
    ),
    "a spreadsheet": (
        "images",
        tasks(lambda rows: rows.to_csv(), suffix="xlsx"),
        "data.table: expected a file .csv or .parquet, got 'mine/tasks.xlsx'; set data.table",
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


def nan_features() -> None:
    ids, features = store.read_features(paths.FEATURES)
    features[7, 3] = np.nan
    store.write_features(paths.FEATURES, [(ids, features)], features.shape[1], stage="extract", params={})


def fewer_features() -> None:
    ids, features = store.read_features(paths.FEATURES)
    store.write_features(paths.FEATURES, [(ids[5:], features[5:])], features.shape[1], stage="extract", params={})


def unsigned_features() -> None:
    """As another program would write them."""
    pq.write_table(pq.read_table(paths.FEATURES).replace_schema_metadata({}), paths.FEATURES)


def rewrite(path: Path, schema: pa.Schema, change_rows: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    store.write_table(path, change_rows(store.read_table(path, schema)), schema, stage="test", params={})


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def header(content: bytes) -> Spoil:
    """A safetensors file with this header."""
    return lambda: paths.INITIAL.write_bytes(struct.pack("<Q", len(content)) + content)


def wrong_model(width: int) -> None:
    from safetensors.torch import load_file, save_file

    from mela.models import KIND

    with io.BytesIO(paths.INITIAL.read_bytes()) as file:
        size = struct.unpack("<Q", file.read(8))[0]
        configuration = json.loads(json.loads(file.read(size))["__metadata__"]["mela"])["configuration"]
    content = {"kind": KIND, "configuration": configuration | {"width": width}}
    save_file(load_file(paths.INITIAL), paths.INITIAL, metadata={"mela": json.dumps(content)})


def shared_image() -> None:
    """An image of the training tasks in the test tasks."""
    seen = int(pd.read_parquet(paths.TRAIN)["image_id"].iloc[0])
    table(paths.TEST, store.MANIFEST, image_id=lambda rows: rows["image_id"].where(rows.index != 3, seen))()


BAD_FILES: dict[str, Case] = {
    "no features": (
        "label",
        lambda: paths.FEATURES.unlink(),
        "data/features.parquet: no such file; run `dvc repro`, or the stage that makes it, first",
    ),
    "truncated features": (
        "label",
        cut(paths.FEATURES, 1000),
        f"data/features.parquet: expected a parquet file, got .*; {RERUN}",
    ),
    "features cut in the middle": (
        "label_kmeans",
        lambda: paths.FEATURES.write_bytes(
            paths.FEATURES.read_bytes()[:2000] + b"\0" * 50 + paths.FEATURES.read_bytes()[2050:]
        ),
        f"data/features.parquet: expected a parquet file, got .*; {RERUN}",
    ),
    "labels for features": (
        "label",
        lambda: shutil.copy(paths.MELA_LABELS, paths.FEATURES),
        r"data/features.parquet: expected columns image_id .* found \(image_id: int64, label: int64\); rerun extract",
    ),
    "features of nobody knows what": (
        "label",
        unsigned_features,
        r"data/features.parquet: expected a table written by a stage \(metadata key `mela`\), found none; rerun its .*",
    ),
    "features that are not finite": (
        "label",
        nan_features,
        "data/features.parquet: row 7: expected finite features, found NaN or infinity; rerun embed and extract",
    ),
    "features of other images": (
        "label",
        fewer_features,
        r"features: expected one for every image of the manifest, found none for image \d+; rerun extract",
    ),
    "another table": (
        "pretrain",
        lambda: shutil.copy(paths.TRUTH, paths.MELA_LABELS),
        r"data/labels/mela.parquet: expected columns \(image_id: int64, label: int64\), found \(.*\); " + RERUN,
    ),
    "labels of unknown images": (
        "pretrain",
        table(paths.MELA_LABELS, store.LABELS, image_id=lambda rows: rows["image_id"] + 10**6),
        r"packed images: expected an image \d+, which a task or label names, got \d+ images; rerun .*",
    ),
    "labels below 0": (
        "pretrain",
        table(paths.MELA_LABELS, store.LABELS, label=lambda rows: rows["label"] - 1),
        r"data/labels/mela.parquet: image \d+: expected one label from 0 to 1599, got -1; rerun .*",
    ),
    "an image with two labels": (
        "pretrain",
        table(
            paths.MELA_LABELS,
            store.LABELS,
            image_id=lambda rows: rows["image_id"].where(rows.index != 1, rows["image_id"][0]),
        ),
        r"data/labels/mela.parquet: image \d+: expected one label from 0 to 1599, got \d+, \d+; rerun .*",
    ),
    "a label that is missing": (
        "pretrain",
        table(paths.MELA_LABELS, store.LABELS, label=lambda rows: rows["label"].astype("Int64").where(rows.index != 4)),
        "data/labels/mela.parquet: row 4: expected a value in column label, found none; rerun its stage",
    ),
    "no labels": (
        "pretrain",
        lambda: store.write_table(
            paths.MELA_LABELS, pd.DataFrame(columns=["image_id", "label"]), store.LABELS, stage="label", params={}
        ),
        "pretrain.labels: expected at least 2 global labels to tell apart, got 0",
    ),
    "one label": (
        "pretrain",
        table(paths.MELA_LABELS, store.LABELS, label=0),
        "pretrain.labels: expected at least 2 global labels to tell apart, got 1",
    ),
    "shares that do not add up": (
        "pretrain",
        lambda: (
            params(pretrain__labels="mela_soft")(),
            table(paths.SOFT_LABELS, store.SOFT_LABELS, weight=lambda rows: rows["weight"] / 2)(),
        ),
        r"data/labels/mela_soft.parquet: image \d+: expected labels from 0, each once, with positive weights that .*",
    ),
    "no model": (
        "extract",
        lambda: paths.INITIAL.unlink(),
        "models/initial.safetensors: no such file; run `dvc repro`, or the stage that makes it, first",
    ),
    "a truncated model": (
        "extract",
        cut(paths.INITIAL, 5000),
        "models/initial.safetensors: expected a safetensors file, got .*; train it again",
    ),
    "a model whose header is too long": (
        "extract",
        lambda: paths.INITIAL.write_bytes(struct.pack("<Q", 2**62)),
        "models/initial.safetensors: expected a safetensors file, got .*; train it again",
    ),
    "a model without a header": (
        "extract",
        header(b"{}"),
        "models/initial.safetensors: expected a model of kind mela.backbone/1, found None; train it again",
    ),
    "a pickled model": (
        "extract",
        lambda: paths.INITIAL.write_bytes(b"\x80\x04\x95\x1a\x00\x00\x00cos\nsystem\n(S'exit'\ntR."),
        "models/initial.safetensors: expected a safetensors file, got .*; train it again",
    ),
    "a model of another width": (
        "extract",
        lambda: wrong_model(16),
        "models/initial.safetensors: tensors do not fit its configuration: .*",
    ),
    "a model without channels": (
        "extract",
        lambda: wrong_model(0),
        "models/initial.safetensors: expected a backbone's configuration, got width: expected 1 or more, got 0; .*",
    ),
    "images of another size": (
        "extract",
        lambda: np.save(paths.IMAGES, np.zeros((2900, 20, 20, 1), dtype=np.uint8)),
        r"models/initial.safetensors: expected images of \(20, 20, 1\), the packed ones, got a model for .*",
    ),
    "truncated images": (
        "embed",
        cut(paths.IMAGES, 1000),
        r"data/images/images.npy: expected packed images \(.npy\), got .*; rerun the stage images",
    ),
    "pickled images": (
        "embed",
        lambda: np.save(paths.IMAGES, np.array([{}], dtype=object), allow_pickle=True),
        r"data/images/images.npy: expected packed images \(.npy\), got .*; rerun the stage images",
    ),
    "images of floats": (
        "embed",
        lambda: np.save(paths.IMAGES, np.zeros((4, 16, 16, 1))),
        r"data/images/images.npy: expected images \(N, side, side, .*, found \(4, 16, 16, 1\) of float64; .*",
    ),
    "fewer images than tasks name": (
        "embed",
        lambda: np.save(paths.IMAGES, np.load(paths.IMAGES)[:100]),
        r"packed images: expected an image \d+, which a task or label names, got 100 images; rerun .*",
    ),
    "no training tasks": (
        "embed",
        lambda: store.write_table(
            paths.TRAIN, pd.read_parquet(paths.TRAIN)[:0], store.MANIFEST, stage="manifest", params={}
        ),
        "train manifest: expected at least one task, found none",
    ),
    "test images that were trained on": (
        "evaluate",
        shared_image,
        r"data/manifest/test.parquet: task 0: expected images that no training task has, got image \d+ "
        r"\(1 images are in both\); rerun the stage manifest",
    ),
    "metrics of something else": (
        "report",
        lambda: Path("results/label/metrics.json").write_text("{}"),
        f"results/label/metrics.json: clusters: field required, got none; {RERUN}",
    ),
    "metrics of another kind": (
        "report",
        lambda: edit_json(paths.SCORES, accuracy=None),
        f"results/score_labels/metrics.json: accuracy: input should be a valid number, got None; {RERUN}",
    ),
    "metrics without a loss": (
        "report",
        lambda: edit_json(paths.PRETRAIN_METRICS, proposition1={"task_loss": 1.0}),
        f"results/pretrain/metrics.json: proposition1.global_loss: field required, got none; {RERUN}",
    ),
    "metrics without an interval": (
        "report",
        lambda: edit_json(paths.EVALUATE_METRICS, mela={"5_shot": {"mean": 50.0}}),
        f"results/evaluate/metrics.json: mela.5_shot.ci95: field required, got none; {RERUN}",
    ),
    "metrics of other settings": (
        "report",
        lambda: edit_json(paths.EVALUATE_METRICS, gain={}),
        "results/evaluate/metrics.json: gain: expected the settings .*, got none; rerun evaluate",
    ),
    "points without a column": (
        "report",
        lambda: paths.SIZES.write_text("rank,threshold\n1,2\n"),
        f"results/label/sizes.csv: expected the column tasks, found rank, threshold; {RERUN}",
    ),
    "points that are text": (
        "report",
        lambda: paths.PRETRAIN_CURVE.write_text("epoch,loss,accuracy,learning_rate\n1,low,2,3\n"),
        f"results/pretrain/curve.csv: expected double in the column loss, found .*; {RERUN}",
    ),
    "a role that nobody knows": (
        "evaluate",
        table(paths.TEST, store.MANIFEST, role=lambda rows: rows["role"].where(rows.index != 7, "Support")),
        r"data/manifest/test.parquet: row 7: task 0: expected roles support and query, got another one \(image \d+, .*",
    ),
    "an image twice in a task": (
        "embed",
        table(
            paths.TRAIN,
            store.MANIFEST,
            image_id=lambda rows: rows["image_id"].where(rows.index != 1, rows["image_id"][0]),
        ),
        r"data/manifest/train.parquet: row 1: task 0: expected each image once, got one twice \(.*",
    ),
    "local labels with a gap": (
        "label",
        table(paths.TRAIN, store.MANIFEST, local_label=lambda rows: rows["local_label"] + 1),
        r"data/manifest/train.parquet: row \d+: task 0: expected local labels 0 to ways - 1 of two ways .*",
    ),
    "local labels without end": (
        "score_labels",
        table(paths.TRAIN, store.MANIFEST, local_label=lambda rows: rows["local_label"].where(rows.index != 0, 2**62)),
        r"data/manifest/train.parquet: row \d+: task 0: expected local labels 0 to ways - 1 of two ways .*",
    ),
    "tasks without queries": (
        "embed",
        table(paths.TRAIN, store.MANIFEST, role="support"),
        r"data/manifest/train.parquet: row 0: task 0: expected a query image of each local label, got none of one \(.*",
    ),
    "labels of images that nobody knows": (
        "score_labels",
        table(paths.KMEANS_LABELS, store.LABELS, image_id=lambda rows: rows["image_id"] + 10**6),
        f"data/labels/kmeans.parquet: image 100.*: expected an image of the training tasks, got another; {RERUN}",
    ),
    "no labels to score": (
        "score_labels",
        lambda: store.write_table(
            paths.MELA_LABELS,
            store.read_table(paths.MELA_LABELS, store.LABELS).head(0),
            store.LABELS,
            stage="t",
            params={},
        ),
        f"data/labels/mela.parquet: expected labels of one image or more, got none; {RERUN}",
    ),
    "two true classes of an image": (
        "label_oracle",
        lambda: rewrite(paths.TRUTH, store.TRUTH, lambda rows: pd.concat([rows, rows])),
        rf"data/truth.parquet: image \d+: expected one class, got several; {RERUN}",
    ),
    "clusters of other tasks": (
        "score_labels",
        table(paths.ASSIGNMENTS, store.ASSIGNMENTS, task_id=lambda rows: rows["task_id"] + 1),
        r"data/labels/mela_tasks.parquet: expected each of the \d+ task classes .* once, got others .*; rerun label",
    ),
    "a header that is a list": (
        "extract",
        header(b'{"__metadata__":{"mela":"[]"}}'),
        "models/initial.safetensors: expected a safetensors file, got a header that is list, .*; train it again",
    ),
    "metrics that are no JSON": (
        "report",
        lambda: paths.SCORES.write_text("{"),
        f"results/score_labels/metrics.json: expected JSON, got .*; {RERUN}",
    ),
    "a list of metrics": (
        "report",
        lambda: paths.SCORES.write_text("[]"),
        "results/score_labels/metrics.json: expected a JSON object, got list",
    ),
    "an empty curve": (
        "report",
        lambda: paths.EMBED_CURVE.write_text(""),
        f"results/embed/curve.csv: expected a table, got .*; {RERUN}",
    ),
}
CASES = {
    f"{kind}: {name}": case
    for kind, cases in {"params": BAD_PARAMS, "data": BAD_DATA, "tasks": BAD_TASKS, "files": BAD_FILES}.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_bad_ends_in_one_line(
    name: str, copied: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    stage, spoil, message = CASES[name]
    spoil()
    fails(stage, message, monkeypatch, capfd)


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 50


@pytest.mark.parametrize("mode", ["I;16", "CMYK", "P", "RGBA", "LA", "1"])
def test_unusual_images_are_converted(mode: str, project: Path) -> None:
    folders()()
    if mode in ("P", "1", "LA"):
        Image.open(picture("class 0/9.png")).convert(mode).save("mine/class 0/9.png")
    else:
        picture("class 0/9.tif" if mode in ("I;16", "CMYK") else "class 0/9.png", mode=mode)
    run_stages("images")
    images = store.open_images(paths.IMAGES)
    assert len(images) == 25
    assert (images.reshape(25, -1).std(axis=1) > 20).all()


def test_a_single_image_of_a_class_is_told_where_tasks_are_drawn(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folders(lambda: picture("class 9/0.png"), tasks__ways=2, tasks__shots=1, tasks__queries=2)()
    run_stages("images")
    message = r"tasks.shots \+ tasks.queries: expected at most 1, the images of \w+ class 'class 9', got 3"
    fails("manifest", message, monkeypatch, capfd)


def test_an_empty_split_is_told_where_tasks_are_drawn(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folders(
        split_table("split,class\n" + "".join(f"train,class {n}\n" for n in range(6))), tasks__shots=1, tasks__queries=2
    )()
    run_stages("images")
    fails("manifest", "tasks.val: expected 0 tasks, since no val class has images, got 4", monkeypatch, capfd)


def test_a_picture_in_two_splits_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under another name; it may be what somebody wants, so it is no error."""
    rows = "".join(f"{'train' if number else 'test'},class {number}\n" for number in range(6))
    folders(split_table(f"split,class\n{rows}"))()
    shutil.copy("mine/class 0/1.png", "mine/class 3/1.png")
    run_stages("images")
    assert capsys.readouterr().out.startswith(
        "images: 1 pictures are in several splits, such as 'class 0/1.png' (test) and 'class 3/1.png' (train); "
    )


def test_any_other_error_keeps_its_traceback() -> None:
    code = "from stages.run import run\ndef main(): raise RuntimeError('a defect')\nrun(main)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.endswith("RuntimeError: a defect\n")
