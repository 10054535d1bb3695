"""The learning rates of methods on each data set: which validation tasks choose, and what is refused."""

import math
from pathlib import Path

import pandas as pd
import pytest

from benchmark import settings
from benchmark.matrix import Matrix
from benchmark.systems import title
from mela.errors import MelaError
from mela.methods import find_method
from mela.params import RatesParams
from studies.training import method_rates, rate_search
from studies.training.method_rates import own_head
from studies.training.rate_search import GRID, choose, entry, measured, read_table, with_rates
from tests.helpers.matrix import write_matrix
from tests.helpers.project import ROOT

DATA = sorted((ROOT / "benchmark/data").glob("*.yaml"))
METHODS = Matrix.read(ROOT / "benchmark/params.yaml").task_methods
COLUMNS = ["data", "method", "start", "longer", "optimizer", "rate", "scale", "regularizer", "1_shot", "5_shot"]


def named(rates: RatesParams) -> dict[str, float]:
    """Rates other than null."""
    return {method: rate for method, rate in rates.by_name.items() if rate is not None}


@pytest.mark.parametrize("path", DATA, ids=lambda path: path.stem)
def test_rates_are_those_that_validation_tasks_choose(path: Path) -> None:
    """Where the table holds the whole grid; methods keep their own rate elsewhere, and where it is the best."""
    table = read_table(ROOT / rate_search.TABLE)
    expected = {method: entry(method, choose(measured(table, path.stem, method))) for method in METHODS}
    assert named(RatesParams.read(path)) == {method: rate for method, rate in expected.items() if rate is not None}


def test_the_page_of_methods_names_whose_rates_are_measured() -> None:
    """By data set, in the paragraph in front of the rule."""
    table = read_table(ROOT / rate_search.TABLE)
    names = {"fc100": "FC100", "cifar_fs": "CIFAR-FS", "omniglot": "Omniglot", "glyphs": "the glyphs"}
    tried = {(data, method): measured(table, data, method) for data in names for method in METHODS}
    whole = [pair for pair, rates in tried.items() if {*rate_search.GRID} <= {*rates}]
    assert len(whole) > 1, "otherwise this would hold nothing"
    text = (ROOT / "docs/results/methods.md").read_text(encoding="utf-8")
    said = text.partition("### Learning rates of each data set\n")[2].partition("\n1. ")[0]
    assert {method for method in METHODS if f" {title(method)}" in said} == {method for _, method in whole}
    assert {name for name in names.values() if name in said.partition("All other")[0]} == {
        names[data] for data, _ in whole
    }


@pytest.mark.parametrize(
    ("means", "rate", "missing"),
    [
        ({}, None, [0.0003, 0.001, 0.003]),
        ({0.001: 50}, None, [0.0003, 0.003]),
        ({0.0003: 50, 0.001: 52, 0.003: 51}, 0.001, []),
        ({0.0003: 53, 0.001: 52, 0.003: 51}, 0.0003, [0.0001]),
        ({0.0001: 52, 0.0003: 53, 0.001: 52, 0.003: 51}, 0.0003, []),
        ({0.0001: 54, 0.0003: 53, 0.001: 52, 0.003: 51}, 0.0001, [0.00003]),
        ({0.0003: 50, 0.001: 51, 0.003: 52}, 0.003, [0.01]),
        ({0.0003: 50, 0.001: 51, 0.003: 52, 0.01: 53, 0.03: 40}, 0.01, []),
        # of others it says nothing: there is no neighbour between them and the grid
        ({0.0003: 50, 0.001: 51, 0.003: 52, 0.03: 99}, 0.003, [0.01]),
        ({0.0003: 50, 0.001: 52, 0.003: 51, 0.01: 99}, 0.001, []),
        # the lower of equal ones, and none that diverged
        ({0.0003: 50, 0.001: 52, 0.003: 52}, 0.001, []),
        ({0.0003: 50, 0.001: 51, 0.003: math.nan}, 0.001, []),
    ],
)
def test_choices(means: dict[float, float], rate: float | None, missing: list[float]) -> None:
    found = choose({at: (mean - 10, mean + 10) for at, mean in means.items()})
    assert (found.rate, found.missing) == (rate, missing)


def test_the_mean_of_both_shots_decides() -> None:
    found = choose({0.0003: (50.0, 70.0), 0.001: (52.0, 69.0), 0.003: (53.0, 66.0)})
    assert found.rate == 0.001


def unchosen() -> str:
    """The parameters of a data set in which every method has its own rate."""
    text = (ROOT / "benchmark/data/glyphs.yaml").read_text(encoding="utf-8")
    return with_rates(text, dict.fromkeys(METHODS))


def row(rate: float = 0.001, **changes: object) -> dict[str, object]:
    own = {"data": "tiny", "method": "frn", "start": "nothing", "longer": 1.0, "optimizer": "adam", "rate": rate}
    return own | {"scale": "1", "regularizer": "1", "1_shot": 50.0, "5_shot": 60.0} | changes


def write_table(folder: Path, *rows: dict[str, object]) -> Path:
    pd.DataFrame(rows, columns=COLUMNS).to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def test_only_rows_of_the_method_as_it_is_count(tmp_path: Path) -> None:
    others = {"data": "other", "method": "frn with another head", "start": "mela-rfs", "longer": 2.0}
    others |= {"optimizer": "sgd", "scale": "10", "regularizer": "0.015625"}
    table = write_table(tmp_path, row(), *(row(0.003, **{key: value}) for key, value in others.items()))
    assert measured(read_table(table), "tiny", "frn") == {0.001: (50.0, 60.0)}


def test_the_table_may_not_be_there(tmp_path: Path) -> None:
    message = r"rates.csv: no such file; run python -m studies training.method_rates, or name the tab"
    with pytest.raises(MelaError, match=message):
        read_table(tmp_path / "rates.csv")


def test_choices_are_told_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_matrix(Path("benchmark"), task_methods=["frn", "feat", "protonet"])
    path = Path("benchmark/data/tiny.yaml")
    before = unchosen().replace("  frn: null\n", "  frn: null  # by hand\n").replace("  feat: null\n", "  feat: 0.5\n")
    assert "by hand" in before
    path.write_text(before, encoding="utf-8")
    rows = [row(rate, **{"1_shot": 50 - 1000 * rate}) for rate in (0.0001, 0.0003, 0.001, 0.003)]
    rows += [row(rate, method="feat", scale="nothing", regularizer="nothing") for rate in GRID[:2]]
    table = write_table(tmp_path, *rows)
    rate_search.main(table=table)
    said = capsys.readouterr().out
    assert "tiny frn: 0.0001 in place of 0.003 (49.9 / 60.0 at 0.0001, " in said
    assert "tiny feat: not chosen yet, so 0.001, its own (50.0 / 60.0 at 0.0003, " in said
    assert "missing: python -m studies training.method_rates --data tiny --method frn --rate adam:0.00003\n" in said
    assert "missing: python -m studies training.method_rates --data tiny --method feat --rate adam:0.003\n" in said
    assert "--method protonet --rate adam:0.0003 --rate adam:0.001 --rate adam:0.003\n" in said
    assert said.endswith("benchmark/data/tiny.yaml have other rates; --write puts these in\n")
    assert path.read_text(encoding="utf-8") == before
    rate_search.main(table=table, write=True)
    assert capsys.readouterr().out.endswith("benchmark/data/tiny.yaml are written\n")
    after = before.replace("  frn: null  # by hand\n", "  frn: 0.0001  # by hand\n")
    assert path.read_text(encoding="utf-8") == after.replace("  feat: 0.5\n", "  feat: null\n")
    assert named(RatesParams.read(path)) == {"frn": 0.0001}
    rate_search.main(table=table)
    assert "benchmark/data" not in capsys.readouterr().out, "nothing differs any more"


def test_missing_rows_are_measured_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until the best rate has a neighbour on both sides; what is there is not measured again."""
    monkeypatch.chdir(tmp_path)
    write_matrix(Path("benchmark"), task_methods=["protonet"])
    tried: list[float] = []

    def measure(*, rate: float, **cell: object) -> dict[str, float]:
        tried.append(rate)
        return {"1_shot": 50 - 1000 * abs(rate - 0.0001), "5_shot": 60.0}

    monkeypatch.setattr(method_rates, "measure", measure)
    own = {"method": "protonet", "scale": own_head("protonet").scale, "regularizer": "nothing"}
    table = write_table(tmp_path, row(0.001, **own | {"1_shot": 49.1}))
    rate_search.main(table=table, run=True)
    assert tried == [0.0003, 0.003, 0.0001, 0.00003]
    assert "tiny protonet: 0.0001 in place of" in capsys.readouterr().out
    rate_search.main(table=table, run=True)
    assert len(tried) == 4


def test_small_rates_are_written_as_numbers_that_yaml_reads() -> None:
    assert with_rates("rates:\n  feat: null\n", {"feat": 0.00003}) == "rates:\n  feat: 0.00003\n"
    with pytest.raises(MelaError, match=r"^rates.frn: expected an entry to write the rate into, found none; add it$"):
        with_rates("rates:\n  feat: null\n\nevaluate:\n  frn: 1\n", {"frn": 0.1})


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("mamml: null", "mamml: expected the name of a method, one of anil, .*; correct it, or"),
        ("maml: 0", "maml: input should be greater than 0, got 0"),
        ("maml: fast", "maml: input should be a valid number, got 'fast'"),
        ("maml: .inf", "maml: input should be (less than or equal|a finite)"),
    ],
)
def test_rates_that_make_no_sense(tmp_path: Path, new: str, message: str) -> None:
    source = tmp_path / "data.yaml"
    text = unchosen()
    assert text.count("  maml: null") == 1
    source.write_text(text.replace("maml: null", new), encoding="utf-8")
    with pytest.raises(MelaError, match=f"^{source}: rates.{message}") as caught:
        settings.require_complete(source)
    assert "\n" not in str(caught.value)


def test_methods_that_learn_from_labels_have_their_rate_elsewhere(tmp_path: Path) -> None:
    path = write_matrix(tmp_path)
    source = tmp_path / "data/tiny.yaml"
    source.write_text(unchosen().replace("  maml:", "  rfs:"), encoding="utf-8")
    message = "rates.rfs: expected methods that see tasks, .*, got one that sees labels, .*; rem"
    with pytest.raises(MelaError, match=rf"^{source}: {message}"):
        Matrix.read(path)


def test_settings_name_every_method_of_the_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """DVC asks for the key on which a method's cell depends, also where a data set's file is older than the method."""
    monkeypatch.chdir(tmp_path)
    write_matrix(Path("benchmark"), task_methods=["leo", "feat"])
    path = Path("benchmark/data/tiny.yaml")
    text = path.read_text(encoding="utf-8")
    start, end = text.index("rates:"), text.index("evaluate:")
    path.write_text(f"{text[:start]}rates:\n  feat: 0.0003\n\n{text[end:]}", encoding="utf-8")
    settings.main(data="tiny", seed=0)
    made = Path("benchmark/runs/tiny/seed0/params.yaml")
    assert RatesParams.read(made).by_name == {"leo": None, "feat": 0.0003}
    path.write_text(text[:start] + text[end:], encoding="utf-8")
    settings.main(data="tiny", seed=0)
    assert RatesParams.read(made).by_name == {"leo": None, "feat": None}


def test_a_block_has_the_rate_of_one_method_alone() -> None:
    path = ROOT / "benchmark/data/glyphs.yaml"
    rates = RatesParams.read(path)
    assert rates.only("feat").by_name == {"feat": rates.by_name["feat"]}
    assert rates.only("nobody").by_name == {"nobody": None}
    assert RatesParams().by_name == {}


def test_the_grid_is_a_part_of_what_continues_it() -> None:
    first = rate_search.LADDER.index(GRID[0])
    assert rate_search.LADDER[first : first + len(GRID)] == GRID
    for method in METHODS:
        learner = find_method(method).learner
        assert learner.optimizer == "adam", "whose rates the grid has"
        assert learner.learning_rate in rate_search.LADDER
