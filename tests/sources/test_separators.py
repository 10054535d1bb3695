"""Tables whose cells are not separated by commas, as spreadsheets write them, and archives in place of folders."""

import csv
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mela.errors import MelaError
from mela.io.text_tables import SEPARATORS, find_separator, parse_csv, read_text
from mela.labeling.user_tables import read_tasks
from mela.params import DataParams
from mela.sources.check.layout import find_layout
from mela.sources.open import open_source
from mela.sources.pinned_splits import read_pins
from mela.sources.split_tables import parse_split_table
from tests.helpers.folders import check, people, table_of, told_by_the_stage

CELLS = st.lists(st.text('abc ,;\t|"\n', max_size=6), min_size=3, max_size=3)


@hypothesis_settings(deadline=None, max_examples=200)
@given(rows=st.lists(CELLS, max_size=5), separator=st.sampled_from(list(SEPARATORS)), extra=st.text(",;|\t x"))
def test_a_table_reads_the_same_with_each_separator(rows: list[list[str]], separator: str, extra: str) -> None:
    """Cells that hold any of the separators are quoted, in the header too."""
    written = io.StringIO()
    csv.writer(written, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(
        [["task", f"note{extra}", "split"], *rows]
    )
    table = parse_csv(written.getvalue(), where="table", required=("task", "split"))
    assert list(zip(*table.columns.values(), strict=True)) == [tuple(row) for row in rows]
    assert list(table.columns) == ["task", f"note{extra}", "split"]


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_table_of_splits_with_each_separator(separator: str, mark: str) -> None:
    text = "class,note,split\r\na,x,train\r\n\r\nb,,test\r\n".replace(",", separator)
    assert parse_split_table(text, where="table") == {"a": "train", "b": "test"}
    assert find_separator(mark + text, ("note", "split")) == separator


@pytest.mark.parametrize("separator", SEPARATORS)
def test_the_check_reads_tables_with_each_separator(
    separator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = table_of(people(), split=lambda name: "test" if name < "p2" else "train")
    rows.to_csv("mine/leaves.csv", sep=separator, index=False, encoding="utf-8-sig")
    Path("mine/tasks.csv").unlink()
    layout = find_layout(Path("mine"))
    assert (layout.kind, layout.table) == ("tasks", "leaves.csv")
    done = check("mine")
    assert (done.status, done.errors()) == (0, [])
    assert "given: 4 train, 0 val, 2 test" in done.out


@pytest.mark.parametrize("separator", SEPARATORS)
def test_a_column_whose_name_differs_in_case_or_blanks_is_named(separator: str) -> None:
    text = "Task_ID, split ,note\na,train,\n".replace(",", separator)
    told: list[str] = []
    with pytest.raises(MelaError) as last:
        parse_csv(text, where="table", required=("task_id", "split"), report=told.append)
    assert [*told, str(last.value)] == [
        "table: expected the column 'task_id', got 'Task_ID', ' split ', 'note'; rename 'Task_ID'",
        "table: expected the column 'split', got 'Task_ID', ' split ', 'note'; rename ' split '",
    ]
    # a column of the exact name decides
    assert find_separator("task_id;Task_ID,x", ("task_id",)) == ";"
    assert find_separator("something|else", ("task_id",)) == ","


def test_a_table_is_known_by_columns_of_another_case(mine: Path) -> None:
    (mine / "leaves.csv").write_text("Task_ID;Local_Label;Path\np0;l0;p0/l0/0.png\n")
    assert check("mine", "--all").errors() == [
        f"mine/leaves.csv: expected the column {name.lower()!r}, got 'Task_ID', 'Local_Label', 'Path'; rename {name!r}"
        for name in ("Task_ID", "Local_Label", "Path")
    ]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_text_that_is_no_utf_8_is_told_by_its_line(mark: bytes, end: bytes, tmp_path: Path) -> None:
    (tmp_path / "tasks.csv").write_bytes(mark + end.join([b"a,b", b"", b"c,\xe9"]))
    with pytest.raises(MelaError, match=r"tasks\.csv, line 3: expected text in UTF-8, got .*; save it as UTF-8$"):
        read_text(tmp_path / "tasks.csv", "data.table")
    (tmp_path / "tasks.csv").write_bytes(mark + end.join([b"a,b", b"", b"c,d"]))
    assert read_text(tmp_path / "tasks.csv", "data.table") == f"a,b{end.decode() * 2}c,d"


def test_blanks_around_cells_of_splits_count_only_in_names_that_have_them(tmp_path: Path) -> None:
    text = "class,split\n a ,train \n b, test\nb,val\n"
    assert parse_split_table(text, where="table", known=(" b", "b")) == {" b": "test", "a": "train", "b": "val"}
    (tmp_path / "splits.csv").write_text(text.replace("class", "task"))
    assert read_pins(tmp_path / "splits.csv", [" b", "b", "a"]) == {" b": "test", "a": "train", "b": "val"}


def test_tables_of_tabs_are_read_by_their_suffix(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"p{n // 4}\tl{n // 2 % 2}\tp{n // 4}/l{n // 2 % 2}/{n % 2}.png\ttrain" for n in range(16)]
    (mine / "tasks.tsv").write_text("\n".join(["task_id\tlocal_label\tpath\tsplit", *rows]))
    for path in ("mine", "mine/tasks.tsv"):
        done = check(path, "--write", "params.yaml")
        assert (done.status, done.errors()) == (0, [])
        assert "since tasks.tsv is a table of tasks and their images" in done.out
    assert "images: 16 of" in told_by_the_stage(capsys)
    (mine / "tasks.tsv").write_text("split\tclass\ntrain\tp0/l0\ntrain\tp0/l1\n")
    (mine / "tasks.tsv").rename(mine / "splits.tsv")
    assert find_layout(mine).table == "splits.tsv"


def test_mela_label_reads_tables_with_semicolons(tmp_path: Path) -> None:
    (tmp_path / "tasks.csv").write_text("task_id;image_id;local_label\n1;2;a,b\n1;3;c\n")
    assert read_tasks(tmp_path / "tasks.csv")["local_label"].tolist() == ["a,b", "c"]


def test_an_archive_is_to_be_unpacked_and_nothing_is_written(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile("mine.zip", "w") as archive:
        archive.writestr("../outside.png", b"x")
    advice = "unpack it, for instance by `unzip mine.zip -d mine`, and name the folder"
    before = sorted(Path().rglob("*"))
    done = check("mine.zip")
    assert (done.status, done.out) == (1, "")
    assert done.err == f"error: mine.zip: expected a folder of images, got an archive; {advice}\n"
    Path("my images;.zip").touch()
    advice = "unpack it, for instance by `unzip 'my images;.zip' -d 'my images;'`, and name the folder"
    assert check("my images;.zip").err.endswith(f"got an archive; {advice}\n")
    Path("my images;.zip").unlink()
    for name in ("tasks", "folder"):
        data = DataParams.read().model_copy(update={"name": name, "root": "mine.zip"})
        with pytest.raises(MelaError, match=r"^data\.root: expected a folder, got the archive mine\.zip; unpack it"):
            open_source(data, shots=1)
    assert sorted(Path().rglob("*")) == before
    (mine / "more.tar.gz").touch()
    assert "1 file: an archive (.gz), to be unpacked first ('more.tar.gz')" in check("mine").out
    assert "an archive (.gz)" in told_by_the_stage(capsys)
