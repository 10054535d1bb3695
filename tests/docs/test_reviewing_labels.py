"""The guide to reviewing labels: its table and its Python do what it says, with labels that have its names."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela import MergeLabeler
from mela.labeling.given_names import names_of_clusters, read_given_names
from tests.helpers.commands import mela
from tests.helpers.docs import blocks
from tests.helpers.labelers import tasks

PAGE = "docs/guides/reviewing-labels.md"
NAMES = {(0, 0): ("anna", "pilz"), (0, 1): ("anna", "ahorn"), (1, 0): ("ben", "mushroom"), (1, 1): ("ben", "tree 1")}


@pytest.fixture
def named() -> tuple[np.ndarray, list[str], list[str]]:
    """Features, local labels and tasks of the samples; two people have the names of the page."""
    X, y, groups = tasks(0)
    words = [
        NAMES.get((task, label), (f"person {task}", f"label {label}"))
        for task, label in zip(groups.tolist(), y.tolist(), strict=True)
    ]
    people = {0: "anna", 1: "ben"}
    return (
        X,
        [label for _, label in words],
        [people.get(task, name) for task, (name, _) in zip(groups.tolist(), words, strict=True)],
    )


def content(language: str, begins: str = "") -> str:
    (block,) = [block for block in blocks(PAGE) if block.language == language and block.content.startswith(begins)]
    return block.content


def test_its_python_keeps_to_the_links(named: tuple[np.ndarray, list[str], list[str]]) -> None:
    X, y, groups = named
    scope = {"X": X, "y": y, "groups": groups}
    exec(content("python"), scope)
    labels = scope["labeler"].labels_  # type: ignore[attr-defined]
    of = {pair: label for *pair, label in zip(groups, y, labels, strict=True) for pair in [tuple(pair)]}
    assert of["anna", "pilz"] == of["ben", "mushroom"] >= 0
    assert of["anna", "ahorn"] != of["ben", "tree 1"]


def test_its_table_is_kept_to(
    named: tuple[np.ndarray, list[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    X, y, groups = named
    np.save("features.npy", X)
    pd.DataFrame({"task_id": groups, "image_id": np.arange(len(y)), "local_label": y}).to_csv("tasks.csv", index=False)
    Path("corrections.csv").write_text(content("csv", "task,label,other"), encoding="utf-8")
    done = mela("label", "features.npy", "tasks.csv", "--corrections", "corrections.csv", "--out", "labels.csv")
    assert (done.returncode, done.stderr) == (0, "")
    of = pd.read_csv("labels_tasks.csv").set_index(["task_id", "local_label"])["cluster"]
    assert of["anna", "pilz"] == of["ben", "mushroom"]
    assert of["anna", "ahorn"] != of["ben", "tree 1"]
    plain = MergeLabeler().fit(X, y, groups).labels_
    assert len(set(plain.tolist())) == 6, "else the table changes nothing"


def test_its_name_is_that_of_the_class(tmp_path: Path) -> None:
    path = tmp_path / "class_names.csv"
    path.write_text(content("csv", "task,label,name"), encoding="utf-8")
    found = names_of_clusters(read_given_names(path), [*NAMES.values()], np.array([0, 1, 0, 2]), every=True)
    assert found == {0: "fly agaric"}
