"""Studies that are grids: what is measured once, what diverging leaves, and the tables that are there."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import typer

from mela.blocks import read_yaml
from mela.errors import DivergedError, MelaError
from studies import grid
from studies.grid import program
from studies.training.trials import means
from tests.helpers.project import ROOT


def measure(*, data: str, rate: float, scale: str) -> dict[str, float]:
    """Diverges where the rate is 1, and cannot be where it is 2."""
    if rate == 1:
        raise DivergedError("sum: expected a finite loss, got nan; lower sum.rate (now 1)")
    if rate == 2:
        raise MelaError("sum: expected a rate, got 2; choose another")
    return {"1_shot": rate + float(scale)}


def complete(out: Path, cells: list[dict[str, Any]], **how: bool) -> None:
    grid.complete(out, cells, measure, ["1_shot"], ordered=True, **how)


def trials(*pairs: tuple[float, str]) -> list[dict[str, Any]]:
    return [{"data": "glyphs", "rate": rate, "scale": scale} for rate, scale in pairs]


def test_each_trial_is_measured_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where a number has more digits than the table keeps, and a text looks like a number."""
    out = tmp_path / "trials.csv"
    chosen = trials((0.123456789, "10"), (1 / 3, "10"), (1 / 3, "10.0"))
    complete(out, chosen)
    assert capsys.readouterr().out.count("1_shot") == 3
    complete(out, chosen[1:])
    assert not capsys.readouterr().out
    complete(out, trials((0.123457, "3"), (0.12346, "10")))
    assert capsys.readouterr().out.count("1_shot") == 2
    rows = pd.read_csv(out, dtype={"scale": str})
    assert [*rows] == ["data", "rate", "scale", "1_shot"]
    assert list(rows["rate"]) == [0.123457, 0.123457, 0.12346, 0.333333, 0.333333]
    assert list(rows["scale"]) == ["10", "3", "10", "10", "10.0"], "sorted by what was tried"


def test_rows_are_in_the_order_of_truth_values(tmp_path: Path) -> None:
    out = tmp_path / "trials.csv"
    for cell in ({"on": True, "rate": 10}, {"on": False, "rate": 10}, {"on": True, "rate": 9}):
        grid.complete(out, [cell], lambda **_: {"value": 1}, ["value"], ordered=True)
    assert pd.read_csv(out)[["on", "rate"]].to_numpy().tolist() == [[False, 10], [True, 9], [True, 10]]


def test_what_diverges_has_a_row_without_accuracies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "trials.csv"
    complete(out, trials((0.5, "1"), (1.0, "1")))
    assert "expected a finite loss, got nan" in capsys.readouterr().out
    rows = pd.read_csv(out)
    assert list(rows["1_shot"].isna()) == [False, True]
    complete(out, trials((1.0, "1")))
    assert not capsys.readouterr().out, "it is known"


def test_any_other_error_ends_the_trials(tmp_path: Path) -> None:
    out = tmp_path / "trials.csv"
    with pytest.raises(MelaError, match=r"expected a rate, got 2"):
        complete(out, trials((0.5, "1"), (2.0, "1"), (0.25, "1")))
    assert list(pd.read_csv(out)["rate"]) == [0.5], "what was measured before stays"


def test_means_are_by_setting() -> None:
    rows = pd.DataFrame({"setting": ["5_shot", "1_shot", "1_shot"], "accuracy": [90.0, 50.0, 60.0]})
    assert means(rows) == {"1_shot": 55.0, "5_shot": 90.0}


def test_rows_are_replaced_only_where_that_is_asked_for(tmp_path: Path) -> None:
    """And all others stay as they are, to the letter."""
    out = tmp_path / "trials.csv"
    out.write_text('data,rate,scale,1_shot\nglyphs,0.500,1,7.0\nglyphs,0.5,1,7\n"a,b",0.5,1,\n', encoding="utf-8")
    complete(out, trials((0.5, "1")))
    assert ",7\n" in out.read_text(encoding="utf-8")
    complete(out, trials((0.5, "1")), again=True)
    assert set(out.read_text(encoding="utf-8").splitlines()[1:]) == {
        "glyphs,0.500,1,7.0",
        "glyphs,0.5,1,1.5",
        '"a,b",0.5,1,',
    }


def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: str, more: str = "") -> Any:
    """The command of a study whose measure notes its cells."""
    path = tmp_path / "noted.yaml"
    text = f"about: A.\nmeasure: tests.studies.test_grid:noted\nout: a/b.csv\ncolumns: [value]\nkeys:\n{keys}{more}"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setitem(grid.FILES, "noted", path)
    monkeypatch.setattr(grid, "_found", lambda name: {"noted": noted, "DATA": DATA, "even": even}[name.split(":")[1]])
    return program("noted")


CALLS: list[dict[str, Any]] = []
DATA = {"glyphs": 1, "fc100": 2}


def noted(**cell: Any) -> list[dict[str, Any]]:
    CALLS.append(cell)
    return [{"value": 1.0}, {"value": None, "more": 3}]


def even(cell: dict[str, Any]) -> dict[str, Any]:
    return cell | {"seed": cell["seed"] // 2 * 2}


def test_cells_are_the_product_of_the_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = "  seed: 3\n  data: m:DATA\n  optimizer, rate: [sgd:0.5]\n  labeler: {a: {q: 2}, b: {}}\n"
    run = study(tmp_path, monkeypatch, keys, "options: {folder: a/b}\ncell: m:even\n")
    CALLS.clear()
    run(data=["glyphs"], out=tmp_path / "b.csv")
    own = {"data": "glyphs", "optimizer": "sgd", "rate": 0.5, "folder": Path("a/b")}
    assert [
        own | {"seed": seed, "labeler": labeler, "settings": settings}
        for seed in (0, 2)
        for labeler, settings in (("a", {"q": 2}), ("b", {}))
    ] == CALLS
    rows = pd.read_csv(tmp_path / "b.csv")
    assert [*rows] == ["seed", "data", "optimizer", "rate", "labeler", "value"]
    assert rows["value"].isna().tolist() == [False, True] * 4
    run(data=["glyphs"], seeds=1, rate=["adam:3e-05", "sgd:0.5"], labeler=["b"], out=tmp_path / "b.csv")
    assert [call["rate"] for call in CALLS[4:]] == [3e-05], "the others are there"
    for option, known in (("data", "glyphs or fc100"), ("labeler", "a or b")):
        with pytest.raises(typer.BadParameter, match=f"--{option}: expected {known}, got 'c'"):
            run(**{option: ["c"]}, out=tmp_path / "b.csv")


@pytest.mark.parametrize("name", grid.FILES)
def test_a_table_that_is_there_has_the_columns_of_its_study(name: str) -> None:
    """And its keys are written as the study would look for them, so that no row is measured again."""
    document = read_yaml(grid.FILES[name])
    rows = pd.read_csv(ROOT / document["out"], dtype=str, keep_default_na=False)
    keys = [part for key in document["keys"] for part in key.split(", ")]
    assert sorted(rows) == sorted([*keys, *document["columns"]])
    assert [*rows][: len(keys)] == keys or name == "labels.worth"
    assert all(grid.text(grid._number(value)) == value for key in keys for value in rows[key])
    for key, values in document["keys"].items():
        if isinstance(values, dict):
            assert set(rows[key]) <= set(values)


@pytest.mark.parametrize("name", grid.NAMES)
def test_the_documentation_names_the_command_of_each_study(name: str) -> None:
    """And there is one for each study, whether it is a grid or not."""
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "Makefile"]
    assert any(f"python -m studies {name}" in " ".join(page.read_text(encoding="utf-8").split()) for page in pages)
    assert callable(grid.command(name))
