"""Trials on validation tasks: what is measured once, and what a training that diverges leaves."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from mela.errors import DivergedError, MelaError
from studies.training.trials import Trial, complete, means


@dataclass(frozen=True, kw_only=True)
class Sum(Trial):
    """Diverges where the rate is 1, and cannot be where it is 2."""

    rate: float
    scale: str

    def measure(self) -> dict[str, float]:
        if self.rate == 1:
            raise DivergedError("sum: expected a finite loss, got nan; lower sum.rate (now 1)")
        if self.rate == 2:
            raise MelaError("sum: expected a rate, got 2; choose another")
        return {"1_shot": self.rate + float(self.scale)}


def trials(*pairs: tuple[float, str]) -> list[Trial]:
    return [Sum(data="glyphs", rate=rate, scale=scale) for rate, scale in pairs]


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
