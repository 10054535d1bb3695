"""Names that people give to classes: which class each belongs to, and what is wrong with one."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela.errors import MelaError
from mela.io.name_tables import LISTING, names_by_cluster
from mela.labeling.given_names import (
    LONGEST,
    add_given_name,
    names_of_clusters,
    read_given_names,
    with_class_names,
)

LABELS = [("anna", "pilz"), ("anna", "=1+1"), ("ben", "mushroom"), ("ben", "maple"), (3, 0)]
CLUSTERS = np.array([0, 1, 0, 1, -1])


def named(path: Path, clusters: np.ndarray = CLUSTERS, *, every: bool = True) -> dict[int, str]:
    return names_of_clusters(read_given_names(path), LABELS, clusters, every=every)


def test_a_name_follows_its_label_into_any_cluster(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    assert read_given_names(path) == []
    add_given_name(path, ("anna", "pilz"), "fly agaric")
    add_given_name(path, ("anna", "=1+1"), "=maple")
    add_given_name(path, (3, 0), "none of the classes")
    assert "'=maple" in path.read_text(encoding="utf-8"), "no spreadsheet runs it"
    assert named(path) == {0: "fly agaric", 1: "=maple"}
    assert named(path, np.array([7, 2, 3, 3, 1])) == {7: "fly agaric", 2: "=maple", 1: "none of the classes"}


def test_the_last_name_of_a_cluster_counts_and_an_empty_one_takes_it_back(tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    for label, name in [(LABELS[0], "mushroom"), (LABELS[3], "maple"), (LABELS[2], "fly agaric")]:
        add_given_name(path, label, name)
    assert named(path) == {0: "fly agaric", 1: "maple"}
    apart = named(path, np.array([0, 1, 2, 1, -1]))
    assert apart == {0: "mushroom", 1: "maple", 2: "fly agaric"}, "if the class is divided, each part has its own name"
    add_given_name(path, LABELS[0], "")
    assert named(path) == {1: "maple"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("dora,pilz,x", "line 2: expected a task with labels to be inferred, got 'dora'"),
        ("anna,pils,x", "line 2: expected a label of its task, got 'pils', while task 'anna' has '=1+1', 'pilz'"),
    ],
)
def test_an_unknown_label_is_an_error_or_passed_over(row: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "names.csv"
    path.write_text(f"task,label,name\n{row}\nanna,pilz,y\n", encoding="utf-8")
    with pytest.raises(MelaError) as error:
        named(path)
    assert message in str(error.value)
    assert named(path, every=False) == {0: "y"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("task,label\na,b\n", "names.csv: expected the column 'name'"),
        (f"task,label,name\na,b,{'x' * (LONGEST + 1)}\n", f"line 2: expected a name of at most {LONGEST} letters"),
        ('task,label,name\na,b,"x\ny"\n', "line 2: expected a name without line breaks"),
        ("task,label,name\na,b,\u202ex\n", "line 2: expected a name without line breaks"),
    ],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text(text, encoding="utf-8")
    with pytest.raises(MelaError) as error:
        read_given_names(tmp_path / "names.csv")
    assert message in str(error.value)


def test_a_listing_has_the_names_of_the_classes(tmp_path: Path) -> None:
    add_given_name(tmp_path / "names.csv", ("ben", "mushroom"), "fly agaric")
    listing = pd.DataFrame(LABELS, columns=["task", "label"]).assign(
        cluster=pd.array([0, 1, 0, 1, None], dtype="Int64"), clustered=[True, True, True, True, False], name=""
    )
    found = with_class_names(listing, read_given_names(tmp_path / "names.csv"))
    assert found["name"].tolist() == ["fly agaric", "", "fly agaric", "", ""]
    assert names_by_cluster(found) == {0: "fly agaric"}
    assert set(found.columns) <= set(LISTING.names)
