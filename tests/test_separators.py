"""Tables whose cells are not separated by commas, as spreadsheets write them, and archives in place of folders."""

import csv
import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from test_data_check import check, people, table_of
from test_messy_folders import mine as mine
from test_messy_folders import told_by_the_stage

from mela.data.layout import find_layout
from mela.data.open import open_source
from mela.data.tables import SEPARATORS, find_separator, parse_csv, parse_split_table
from mela.errors import MelaError
from mela.label_inputs import read_tasks
from mela.params import DataParams

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
