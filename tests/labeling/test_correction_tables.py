"""Tables of corrections: read in any usual form, written so that nothing is lost, and every mistake named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mela.errors import MelaError
from mela.io.appended_tables import remove_last_row
from mela.io.name_tables import TASK_NAMES, no_names
from mela.labeling.correction_tables import (
    COLUMNS,
    add_correction,
    links_by_name,
    numbered_links,
    read_corrections,
)
from mela.labeling.links import Said

MANIFEST = pd.DataFrame({"task_id": [3, 3, 5, 5, 8], "local_label": [0, 1, 0, 1, 0]})
NAMES = pd.DataFrame(
    [
        (3, 0, "anna", "pilz"),
        (3, 1, "anna", "=1+1"),
        (5, 0, "ben", "pilz"),
        (5, 1, "ben", "maple"),
        (8, 0, "cleo", "x"),
    ],
    columns=TASK_NAMES.names,
)


def test_what_is_added_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "corrections.csv"
    assert read_corrections(path) == []
    add_correction(path, ("anna", "=1+1"), ("ben", 'a "maple", red'), same=True)
    add_correction(path, ("'quoted", "zwei\nzeilen"), ("ben", "maple"), same=False)
    assert path.read_text(encoding="utf-8").splitlines()[1].startswith('"anna","\'=1+1"'), "no spreadsheet runs it"
    assert read_corrections(path) == [
        (("anna", "'=1+1"), ("ben", 'a "maple", red'), True, f"{path}, line 2"),
        (("'quoted", "zwei\nzeilen"), ("ben", "maple"), False, f"{path}, line 3"),
    ]


def test_a_table_that_somebody_began_keeps_its_form(tmp_path: Path) -> None:
    path = tmp_path / "corrections.csv"
    # another separator and order, a column of remarks, and a last line without an end
    path.write_text("answer;task;label;other_task;other_label;why\n Same;anna;pilz;ben;pilz;sure", encoding="utf-8")
    add_correction(path, ("anna", "pilz"), ("ben", "maple; red"), same=False)
    assert read_corrections(path) == [
        (("anna", "pilz"), ("ben", "pilz"), True, f"{path}, line 2"),
        (("anna", "pilz"), ("ben", "maple; red"), False, f"{path}, line 3"),
    ]


@pytest.mark.parametrize("strange", ["\u2028", "\x85", "\x0b", "\x1c", "\r\n", "\n"])
def test_only_the_last_row_is_taken_back(strange: str, tmp_path: Path) -> None:
    path, table = tmp_path / "corrections.csv", tmp_path / "elsewhere.csv"
    table.write_bytes(b"\xef\xbb\xbf")
    table.chmod(0o640)
    path.symlink_to(table)
    for number in range(3):
        add_correction(path, ("anna", f"a{strange}b"), ("ben", str(number)), same=True)
    before = read_corrections(path)
    remove_last_row(path, COLUMNS)
    assert read_corrections(path) == before[:2]
    assert path.is_symlink()
    assert table.read_bytes().startswith(b"\xef\xbb\xbf"), "spreadsheets know by it that this is UTF-8"
    assert table.stat().st_mode & 0o777 == 0o640


def test_a_file_of_blanks_gets_a_header(tmp_path: Path) -> None:
    path = tmp_path / "corrections.csv"
    path.write_text("  ", encoding="utf-8")
    add_correction(path, ("anna", "pilz"), ("ben", "maple"), same=True)
    assert len(read_corrections(path)) == 1


def test_cells_mean_names_as_they_are_or_as_a_table_shows_them() -> None:
    names = [("anna", "'=x"), ("ben", "=x"), ("cleo", " y"), ("dora", "y")]
    starts = np.arange(5)
    said = [
        Said(("anna", "'=x"), ("ben", "'=x"), True, "1"),
        Said((" ben", "=x "), ("cleo", " y"), False, "2"),
        Said(("dora ", " y"), ("ben", "=x"), True, "3"),
    ]
    links = links_by_name(said, names, starts)
    assert links is not None
    assert (links.same.tolist(), links.different.tolist()) == ([[0, 1], [3, 1]], [[1, 2]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "task,label,other_task,other_label,answer\na,b,c,d,maybe\n",
            "line 2: expected the answer 'same' or 'different'",
        ),
        ("task,label,other_task,answer\na,b,c,same\n", "expected the column 'other_label'"),
        ("task,label,other_task,other_label,answer\na,b,c,same\n", "line 2: expected 5 cells as in the header, got 4"),
    ],
)
def test_mistakes_are_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(text, encoding="utf-8")
    with pytest.raises(MelaError) as error:
        read_corrections(tmp_path / "mine.csv")
    assert message in str(error.value)
    assert str(tmp_path / "mine.csv") in str(error.value)


def test_names_become_numbers(tmp_path: Path) -> None:
    path = tmp_path / "corrections.csv"
    add_correction(path, ("anna", "=1+1"), ("ben", "pilz"), same=False)
    add_correction(path, ("anna", "pilz"), ("ben", "pilz"), same=True)
    found = numbered_links(read_corrections(path), MANIFEST, NAMES)
    assert found.to_numpy().tolist() == [[3, 0, 5, 0, True], [3, 1, 5, 0, False]]
    assert numbered_links([], MANIFEST, NAMES).empty
    # tasks that nobody named have numbers for names
    path.unlink()
    add_correction(path, (8, 0), (5, 1), same=True)
    assert numbered_links(read_corrections(path), MANIFEST, no_names()[0]).to_numpy().tolist() == [[8, 0, 5, 1, True]]


def test_a_name_that_no_training_task_has_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "corrections.csv"
    add_correction(path, ("anna", "pilz"), ("dora", "pilz"), same=True)
    with pytest.raises(MelaError, match="line 2: expected a task with labels to be inferred, got 'dora'"):
        numbered_links(read_corrections(path), MANIFEST, NAMES)
