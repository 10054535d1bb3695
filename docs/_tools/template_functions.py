"""Give templates of pages the figures of the results, and fail if these contradict the words around them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmark import places
from benchmark.comparison import Measured, Results, measured, read_heads, read_results, seeds_by_system
from benchmark.matrix import PARAMS, Matrix
from benchmark.report import pairs
from benchmark.systems import title
from mela.errors import MelaError
from mela.evaluation.intervals import Interval
from mela.methods import find_method
from mela.reporting.published import CONV4, METADATASET_BY_DATASET, SYSTEMS
from studies.labels.tables import NAMES
from studies.training.method_rates import own_head

SHOTS = (1, 5)
SETTINGS = [f"{shot}_shot" for shot in SHOTS]
STUDIES = Path("studies/results")
RUN = Path("results/metrics.json")
# what a run has to compare that pages speak of
COMPARED = ("initial", "merged", "pruned", "oracle")
Row = Mapping[str, Any]


def require(true: object, words: str, got: object = "other results") -> None:
    """Raise MelaError unless a statement of a page is true."""
    if not true:
        raise MelaError(f"expected that {words}, got {got}; correct the words")


def fixed(number: float, digits: int = 1, form: str = "") -> str:
    """Round half up as the number is written, since a file's 73.55 is 73.6 on a page; `form` may be "+" or ","."""
    return f"{Decimal(str(number)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):{form}}"


def span(numbers: Iterable[float], digits: int = 1) -> str:
    """Return the smallest and the largest number, or the one that they share."""
    known = sorted(numbers)
    return " to ".join(dict.fromkeys(fixed(number, digits) for number in (known[0], known[-1])))


def pair(row: Row) -> str:
    """Return the 1-shot and the 5-shot accuracy of a row."""
    return " / ".join(f"{row[setting]:.1f}" for setting in SETTINGS)


def average(rows: Sequence[Row]) -> Row:
    """Return the mean accuracies of several rows."""
    return {setting: sum(row[setting] for row in rows) / len(rows) for setting in SETTINGS}


def more(one: Row, other: Row, *shots: int) -> str:
    """Return by how much the accuracies of a row are above those of another one; raise MelaError if they are not."""
    less = [one[f"{shot}_shot"] - other[f"{shot}_shot"] for shot in shots or SHOTS]
    require(min(less) > 0, f"{dict(one)} is ahead of {dict(other)} at {shots or SHOTS} shots", less)
    return " / ".join(f"{gain:.1f}" for gain in less)


def by_seed(one: Measured) -> dict[int, float]:
    """Return the mean of each seed."""
    return dict(zip(one.seeds.tolist(), one.accuracies.mean(axis=1).tolist(), strict=True))


def bare(text: str) -> str:
    """Return a text without the half-widths of its intervals."""
    return re.sub(r" ± [\d.]+", "", text)


class Figures:
    """Provide figures of the benchmark and of the studies; each public method is a function of the templates.

    Where a method takes `shots`, none means 1-shot and 5-shot, and the text has both.
    """

    def __init__(self) -> None:
        self.matrix = Matrix.read(PARAMS)
        # each result is read or computed once
        for name in ("results", "heads", "seeds", "found", "difference", "table", "_records"):
            setattr(self, name, cache(getattr(self, name)))

    def functions(self) -> dict[str, Any]:
        """Return what templates may call and name."""
        own = {name: getattr(self, name) for name in dir(self) if not name.startswith("_")}
        free = (average, bare, fixed, more, pair, require, span)
        others = (find_method, floor, pairs.holds_anew, pairs.signed, own_head, title, zip)
        named = {one.__name__: one for one in (*free, *others)}
        return {
            **own,
            **named,
            "names": NAMES,
            "published": SYSTEMS,
            "published_conv4": CONV4,
            "published_mixed": METADATASET_BY_DATASET,
        }

    def results(self, data: str) -> Results:
        """Return the accuracies of all systems on each test task of a data set."""
        return read_results(places.RESULTS, data)

    def heads(self, data: str) -> pd.DataFrame:
        """Return means of all systems by all heads."""
        return read_heads(places.RESULTS, data)

    def seeds(self, data: str) -> dict[str, set[int]]:
        """Return the seeds of each system that is measured."""
        return seeds_by_system(self.results(data))

    def found(self, system: str, data: str, shot: int) -> Measured:
        """Return the accuracies of a system."""
        one = measured(self.results(data), system, f"{shot}_shot")
        if one is None:
            raise MelaError(f"expected {system} measured on {data}, {shot}-shot, found none; run `make benchmark`")
        return one

    def difference(self, first: str, second: str, data: str, shot: int) -> Measured:
        """Return how far the first system is above the second, paired by task and by seed."""
        less = self.found(first, data, shot).less(self.found(second, data, shot))
        if less is None:
            raise MelaError(f"expected {first} and {second} with one seed on {data}, found none; run `make benchmark`")
        return less

    def value(self, system: str, data: str, shot: int) -> float:
        """Return the mean accuracy of a system as a number."""
        return self.found(system, data, shot).interval.mean

    def mean(self, system: str, data: str, *shots: int) -> str:
        """Return the mean accuracy of a system."""
        return " / ".join(f"{self.value(system, data, shot):.1f}" for shot in shots or SHOTS)

    def interval(self, system: str, data: str, *shots: int) -> str:
        """Return the mean accuracy of a system with its interval over test tasks."""
        return " / ".join(f"{self.found(system, data, shot).interval:.1f}" for shot in shots or SHOTS)

    def of_seeds(self, system: str, data: str, shot: int) -> dict[int, float]:
        """Return the mean accuracy of each seed."""
        return by_seed(self.found(system, data, shot))

    def by_head(self, system: str, data: str, head: str) -> Row:
        """Return means over all tasks and seeds by a head on a system's features."""
        rows = self.heads(data).query("system == @system and head == @head")
        require(len(rows), f"{system} is measured with the head {head} on {data}")
        return {str(setting): mean for setting, mean in rows.groupby("setting")["mean"].mean().items()}

    def ahead(
        self,
        first: str,
        second: str,
        data: str,
        *shots: int,
        sure: bool | None = None,
        seeds: Sequence[int] | None = None,
        each: bool = False,
    ) -> str:
        """Return by how much the first system is ahead, with the interval over tasks; raise MelaError if it is not.

        `sure` is whether the words say that this holds with chance in training counted in, or that it does not. Where
        they name the seeds that both systems have, `seeds` is these; `each` is for words that say "in each seed".
        """
        texts = []
        for shot in shots or SHOTS:
            one = self.difference(first, second, data, shot)
            means = by_seed(one)
            words = f"{first} is ahead of {second} on {data}, {shot}-shot"
            require(one.interval.mean > 0, words, one.interval)
            counted = f"{'with' if sure else 'but not with'} chance in training counted in"
            require(sure in (None, pairs.holds_anew(one)), f"{words}, {counted}", one.anew)
            require(seeds in (None, [*means]), f"{words}, of the seeds {seeds}", means)
            require(not each or min(means.values()) > 0, f"{words}, in each seed", means)
            texts.append(f"{one.interval:.1f}")
        return " and ".join(texts)

    def points(self, first: str, second: str, data: str, *shots: int, **words: Any) -> str:
        """Return by how much the first system is `ahead`, without the interval."""
        return bare(self.ahead(first, second, data, *shots, **words))

    def level(self, first: str, second: str, data: str, *shots: int, within: float = 1) -> None:
        """Raise MelaError unless two systems are level: less than a point apart, and not for sure."""
        for shot in shots or SHOTS:
            one = self.difference(first, second, data, shot)
            is_level = abs(one.interval.mean) < within and not pairs.holds_anew(one)
            got = f"{one.interval}, over seeds {one.anew}"
            require(is_level, f"{first} is level with {second} on {data}, {shot}-shot", got)

    def anew(self, first: str, second: str, data: str, *shots: int) -> str:
        """Return half of the interval of a difference over tasks and seeds."""
        found = [self.difference(first, second, data, shot).anew for shot in shots or SHOTS]
        require(None not in found, f"{first} and {second} have several seeds on {data}")
        return " and ".join(f"{one.ci95:.1f}" for one in found if one is not None)

    def gaps(self, first: str, second: str, names: Iterable[str], data: Iterable[str], *shots: int) -> list[float]:
        """Return how far systems are apart whose names have one of `names` in place of {}."""
        settings = [(one, shot) for one in data for shot in shots or SHOTS]
        return [
            self.difference(first.format(name), second.format(name), *setting).interval.mean
            for name in names
            for setting in settings
        ]

    def best(self, system: str, names: Iterable[str], data: str, *shots: int) -> None:
        """Raise MelaError unless a system has the highest mean of the measured `names`."""
        known = [name for name in names if name in self.seeds(data)]
        for shot in shots or SHOTS:
            first = max(known, key=lambda name: self.value(name, data, shot))
            require(first == system, f"{system} is the best of {len(known)} on {data}, {shot}-shot", first)

    def last_run(self) -> dict[str, Any]:
        """Return what the last run of the pipeline has found on the glyphs (`mela.reporting.summary.overview`)."""
        found: dict[str, Any] = json.loads(RUN.read_text(encoding="utf-8"))
        if found.get("data") != "glyphs" or not {*COMPARED} <= {*found}:
            raise MelaError(
                f"{RUN}: expected a run on glyphs that compares {', '.join(COMPARED)}, got {', '.join(found)} on "
                f"{found.get('data')}; run `mela preset glyphs && dvc repro`"
            )
        return found

    def scores(self, data: str, kind: str = "merged") -> list[dict[str, Any]]:
        """Return how good inferred labels of a kind are, with each seed."""
        paths = sorted(places.RESULTS.glob(f"{data}/seed*/labels-{kind}.json"))
        require(paths, f"labels {kind} are scored on {data}")
        return [json.loads(path.read_text(encoding="utf-8")) for path in paths]

    def paired(self, first: str, second: str, data: str) -> str:
        """Return how far the first system is above the second, with the number of seeds in brackets."""
        found = [self.difference(first, second, data, shot) for shot in SHOTS]
        return f"{' / '.join(f'{one.interval:+z.1f}' for one in found)} ({len(found[0].seeds)})"

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of studies/results."""
        return pd.read_csv(STUDIES / f"{name}.csv")

    def rows(self, name: str, /, **cells: object) -> list[dict[str, Any]]:
        """Return the rows of a table, or of a list in JSON, of studies/results that have these cells."""
        return [row for row in self._records(name) if {*cells.items()} <= {(key, row.get(key)) for key in cells}]

    def _records(self, name: str) -> list[dict[str, Any]]:
        if name.endswith(".json"):
            return json.loads((STUDIES / name).read_text(encoding="utf-8"))
        return [{str(key): cell for key, cell in row.items()} for row in self.table(name).to_dict("records")]

    def row(self, name: str, /, **cells: object) -> dict[str, Any]:
        """Return the one row that has these cells."""
        rows = self.rows(name, **cells)
        require(len(rows) == 1, f"{STUDIES / name} has one row with {cells}", f"{len(rows)} rows")
        return rows[0]

    def large(self, labels: str, data: str, suffix: str = "") -> str:
        """Return the accuracies of a ResNet-12 after labels of a kind; the suffix "_5x" is of five support copies."""
        return " / ".join(f"{one:.1f}" for one in self._large(labels, data, suffix))

    def large_level(self, data: str) -> str:
        """Return how far a ResNet-12 with inferred labels is from one with true ones; MelaError if that is sure."""
        less = self._large("pruned", data, "_less_oracle")
        words = f"inferred labels are level with true ones for ResNet-12 on {data}"
        require(all(abs(one.mean) < 2 * one.ci95 for one in less), words, less)
        return " / ".join(f"{one:+z.1f}" for one in less)

    def _large(self, labels: str, data: str, suffix: str) -> list[Interval]:
        row = self.row("resnet12", data=data, labels=labels)
        return [Interval(row[f"{setting}{suffix}"], row[f"{setting}{suffix}_ci95"]) for setting in SETTINGS]

    def soft_gain(self, test: str, shot: int) -> Interval:
        """Return by how much soft labels are ahead of one label per image on test tasks of a kind, over seeds."""
        rows = self.rows("mixed_levels", labels="inferred, soft", test=test)
        return Interval.of(np.array([row[f"{shot}_shot_less_inferred"] for row in rows], dtype=np.float64))

    def tried(self, data: str, method: str, **changed: Any) -> dict[str, Any]:
        """Return the accuracies of a trial of a method on validation tasks."""
        plain = {"start": "nothing", "longer": 1, "optimizer": "adam", "rate": 0.003}
        head = {"scale": "nothing", "regularizer": "nothing"}
        return self.row("method_rates", data=data, method=method, **{**plain, **head, **changed})

    def trained(self, data: str, method: str, longer: int) -> dict[str, Any]:
        """Return the validation accuracies of a method on MeLa's labels, trained so many times as long."""
        return self.row("label_lengths", data=data, method=method, longer=longer)

    def by_tasks(self, data: str, kind: str, system: str, shot: int, column: str = "mean") -> dict[int, float]:
        """Return a figure for each number of training tasks."""
        rows = self.rows("task_numbers", data=data, kind=kind, system=system, setting=f"{shot}_shot")
        return {row["training_tasks"]: row[column] for row in rows}

    def from_tasks(self, data: str, kind: str, system: str, tasks: int) -> str:
        """Return the accuracies from so many training tasks."""
        return " / ".join(f"{self.by_tasks(data, kind, system, shot)[tasks]:.1f}" for shot in SHOTS)

    def apart(self, data: str, kind: str, system: str, tasks: int, *, behind: bool, sure: bool = False) -> str:
        """Return by how much a system is behind MeLa, or ahead of it, from so many training tasks."""
        texts = []
        for shot in SHOTS:
            keys = ("difference", "difference_ci95")
            less, half = (self.by_tasks(data, kind, system, shot, key)[tasks] for key in keys)
            above = -less if behind else less
            words = f"{system} is {'behind' if behind else 'ahead of'} MeLa on {data} from {tasks} {kind} tasks"
            require(above > half * sure, f"{words}, {shot}-shot", f"{less:+.2f} ± {half:.2f}")
            texts.append(f"{above:.1f} ± {half:.1f}")
        return " and ".join(texts)
