"""Figures of the tables as prose has them: accuracies, and how far systems are apart, each with one digit."""

import json
import re
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmark.comparison import Measured, measured, read_heads, read_results
from benchmark.report.pairs import differences, holds_anew
from mela.evaluation.intervals import Interval
from tests.helpers.project import ROOT

RESULTS = ROOT / "benchmark/results"
FIGURE = re.compile(r"(?<![\d.])\d+\.\d(?!\d|\.\d)")


@cache
def results(data: str) -> pd.DataFrame:
    return read_results(RESULTS, data)


@cache
def systems(data: str) -> dict[str, set[int]]:
    """All that are measured, with their seeds."""
    return {str(system): set(seeds) for system, seeds in results(data).groupby("system")["seed"]}


@cache
def found(system: str, data: str, shot: int) -> Measured:
    one = measured(results(data), system, f"{shot}_shot")
    assert one is not None, f"{system} is not measured on {data}"
    return one


@cache
def difference(first: str, second: str, data: str, shot: int) -> Measured:
    return differences(results(data), first, second)[f"{shot}_shot"]


def on_paper(number: float, digits: int, sign: str = "") -> str:
    """Half up, for what a file has rounded before: its 73.55 is 73.6 on a page, and 73.5 as a float."""
    return f"{Decimal(str(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):{sign}}"


def value(system: str, data: str, shot: int) -> float:
    return found(system, data, shot).interval.mean


def mean(system: str, data: str, shot: int) -> str:
    return f"{value(system, data, shot):.1f}"


def of_seed(system: str, data: str, seed: int) -> list[float]:
    """Means of one seed, 1-shot and 5-shot."""
    both = [found(system, data, shot) for shot in (1, 5)]
    return [float(one.accuracies[list(one.seeds).index(seed)].mean()) for one in both]


def pair(system: str, data: str) -> str:
    """1-shot / 5-shot."""
    return f"{mean(system, data, 1)} / {mean(system, data, 5)}"


def by_head(system: str, data: str, head: str) -> Any:
    """Means over all tasks and seeds by a head on a system's features, 1_shot and 5_shot."""
    rows = read_heads(RESULTS, data).query("system == @system and head == @head")
    assert len(rows), f"{system} is not measured with the head {head} on {data}"
    return rows.groupby("setting")["mean"].mean()


def ahead(first: str, second: str, data: str, shot: int, *, sure: bool | None = None) -> str:
    """By how much the first is ahead, with the interval over tasks; that it is behind would contradict the words.

    `sure` says whether the words tell that it holds with chance in training counted in, or that it does not.
    """
    one = difference(first, second, data, shot)
    assert one.interval.mean >= 0, f"{first} is behind {second} on {data}, {shot}-shot: {one.interval}"
    if sure is not None:
        assert holds_anew(one) == sure, f"{first} less {second} on {data}, {shot}-shot: {one.anew}"
    return f"{one.interval.mean:.1f} ± {one.interval.ci95:.1f}"


def points(first: str, second: str, data: str, shot: int, *, sure: bool | None = None) -> str:
    """The same without the interval."""
    return ahead(first, second, data, shot, sure=sure).partition(" ")[0]


def level(first: str, second: str, data: str, shot: int) -> None:
    """As the page has the word: less than a point apart, and not for sure."""
    one = difference(first, second, data, shot)
    assert abs(one.interval.mean) < 1, f"{first} less {second} on {data}, {shot}-shot: {one.interval}"
    assert not holds_anew(one), f"{first} less {second} on {data}, {shot}-shot: {one.anew}"


def anew(first: str, second: str, data: str, shot: int) -> str:
    """Half of the interval over tasks and seeds."""
    interval = difference(first, second, data, shot).anew
    assert interval is not None
    return f"{interval.ci95:.1f}"


def best_of(names: list[str], data: str, shot: int) -> str:
    """Which has the highest mean."""
    return max((name for name in names if name in systems(data)), key=lambda name: value(name, data, shot))


def labels(data: str) -> list[dict[str, Any]]:
    """What MeLa's labels are worth, with each seed."""
    return scores(data, "merged")


def scores(data: str, kind: str) -> list[dict[str, Any]]:
    """What inferred labels of a kind are worth, with each seed."""
    paths = sorted(RESULTS.glob(f"{data}/seed*/labels-{kind}.json"))
    assert paths
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


class Tried:
    """Rows of a file in studies/results/, found by their cells."""

    def __init__(self, name: str, keys: list[str]) -> None:
        self.rows = pd.read_csv(ROOT / "studies/results" / name).set_index(keys).sort_index()

    def row(self, *key: object) -> Any:
        row = self.rows.loc[key]
        assert isinstance(row, pd.Series), f"{key}: {len(row)} rows"
        return row

    def pair(self, *key: object) -> str:
        row = self.row(*key)
        return f"{row['1_shot']:.1f} / {row['5_shot']:.1f}"


HOW = ["data", "method", "start", "longer", "optimizer", "rate", "scale", "regularizer"]
RATES = Tried("method_rates.csv", HOW)
EMBED = Tried("embed_rates.csv", ["data", "optimizer", "ridge"])
NUMBERS = Tried("task_numbers.csv", ["data", "kind", "system", "setting", "training_tasks"])
LENGTHS = Tried("label_lengths.csv", ["data", "method", "longer"])
VARIANTS = Tried("variants.csv", ["data", "variant"])
STUDENTS = pd.read_csv(ROOT / "studies/results/distill_seeds.csv").query("data == 'glyphs' and labels == 'merged'")


def prose(page: str, heading: str) -> str:
    """What stands between a heading and the next, without tables and blocks, with a space where lines break."""
    text = "\n" + (ROOT / page).read_text(encoding="utf-8")
    _, there, text = text.partition(f"\n{heading}\n")
    assert there, f"{page}: {heading}"
    text = text.partition("\n#")[0]
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not line.startswith("|")]
    return " ".join(" ".join(lines).split())


def check(text: str, phrases: Iterator[str], others: tuple[str, ...] = ()) -> None:
    """Each phrase stands in the text, and no figure outside of them but for those of others."""
    missing = []
    for phrase in [*phrases, *others]:
        if phrase not in text:
            missing.append(phrase)
        text = text.replace(phrase, " ... ")
    assert not missing, "\n".join(["the results say, and the page does not:", *missing])
    left = [text[max(0, figure.start() - 60) : figure.end() + 40] for figure in FIGURE.finditer(text)]
    assert not left, "\n".join(["figures that no phrase has:", *left])


def tried(
    data: str,
    method: str,
    *,
    start: str = "nothing",
    longer: float = 1,
    rate: float = 0.003,
    scale: str = "nothing",
    regularizer: str = "nothing",
) -> pd.Series:
    """Accuracies on validation tasks, 1-shot and 5-shot, by Adam."""
    return RATES.row(data, method, start, longer, "adam", rate, scale, regularizer)


def both(row: pd.Series) -> str:
    """1-shot / 5-shot."""
    return f"{row['1_shot']:.1f} / {row['5_shot']:.1f}"


def of_numbers(data: str, kind: str, system: str, shot: int, column: str = "mean") -> pd.Series:
    """By the number of training tasks."""
    series: pd.Series = NUMBERS.rows.loc[(data, kind, system, f"{shot}_shot"), column]
    return series


def from_even(data: str, system: str, tasks: int) -> str:
    """1-shot / 5-shot, from so many even tasks."""
    return " / ".join(f"{of_numbers(data, 'even', system, shot)[tasks]:.1f}" for shot in (1, 5))


def apart(data: str, system: str, tasks: int, *, behind: bool) -> str:
    """By how much a system is behind MeLa or ahead of it at 1-shot and at 5-shot, from so many even tasks."""
    found = []
    for shot in (1, 5):
        less, half = (of_numbers(data, "even", system, shot, name)[tasks] for name in ("difference", "difference_ci95"))
        assert (less < 0) == behind, f"{system}, {data}, {shot}-shot, {tasks} tasks: {less}"
        found.append(f"{abs(less):.1f} ± {half:.1f}")
    return " and ".join(found)


def without_intervals(text: str) -> str:
    return re.sub(r" ± [\d.]+", "", text)


def soft_gains() -> dict[str, list[Interval]]:
    """Of learning soft labels where levels of classes mix: over seeds, 1- and 5-shot, for each kind of test task."""
    table = pd.read_csv(ROOT / "studies/results/mixed_levels.csv").query("labels == 'inferred, soft'")
    shots = ["1_shot_less_inferred", "5_shot_less_inferred"]
    return {
        str(test): [Interval.of(of[shot].to_numpy(np.float64)) for shot in shots] for test, of in table.groupby("test")
    }
