"""Text of users in csv files: nothing runs in a spreadsheet, and everything comes back as it was written."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mela.io.text_tables import as_written, harmless, read_text_csv, write_text_csv

SCHEMA = pa.schema([("name", pa.string()), ("value", pa.float64())])
DANGEROUS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "=", "-"]
# a wide sign, and what looks as if it had been made harmless
DANGEROUS += ["\uff1d1", "'=1", "''=1"]


@pytest.mark.parametrize("text", DANGEROUS)
def test_no_cell_begins_as_a_formula_does(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert as_written(harmless(text)) == text


@pytest.mark.parametrize(
    "cell",
    ["-5", "+3", "-.5e-3", "pilz", "a=b", "'quoted'", "", "\u0431\u0435\u0440\u0451\u0437\u0430", -5, -0.5, None],
)
def test_numbers_and_other_text_stay_as_they_are(cell: object) -> None:
    assert harmless(cell) == cell
    assert as_written(cell) == cell


@given(text=st.text())
@example(text="'-1")
@example(text="'''@")
@settings(max_examples=300)
def test_every_text_comes_back(text: str) -> None:
    assert as_written(harmless(text)) == text


def test_a_table_keeps_its_numbers_and_its_text(tmp_path: Path) -> None:
    others = ["a,b", 'he said "no"', "two\nlines", "two\r\nlines", "a\rb", "NA", "", "\u202eabc", "\U0001f344"]
    names = [*DANGEROUS, *others]
    values = np.linspace(-3, 4, len(names))
    values[2] = np.nan
    table = pd.DataFrame({"name": names, "value": values})
    write_text_csv(tmp_path / "x.csv", table)
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert [row[1] for row in rows[1:]] == ["" if np.isnan(value) else str(float(f"{value:.6g}")) for value in values]
    assert not [row[0] for row in rows[1:] if row[0][:1] in "=+-@\t\r\n\uff1d" and row[0]]
    found = read_text_csv(tmp_path / "x.csv", SCHEMA)
    assert found["name"].tolist() == names
    np.testing.assert_allclose(found["value"], values, rtol=1e-5)
