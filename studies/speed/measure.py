"""Measure times side by side, memory, and where both were measured.

pyperf and pytest-benchmark finish one contender before the next one begins, so that a machine that slows down
meanwhile favours the first.
"""

import ctypes
import gc
import json
import platform
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from mela.io import store
from mela.reporting.environment import hardware

RESULTS = Path("studies/results/bench.json")


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Hold the seconds of several rounds: the median, and the lowest and highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Timing":
        """Return the timing of the rounds' seconds."""
        return cls(median=median(seconds), low=min(seconds), high=max(seconds))


def seconds_of(function: Callable[[], Any]) -> float:
    """Run a function and return how long it took."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def in_turn(runs: Sequence[Callable[[], float]], n: int) -> list[Timing]:
    """Return the seconds that each run reports over `n` rounds in turn, after one that is not counted."""
    rounds = [[run() for run in runs] for _ in range(n + 1)][1:]
    return [Timing.of([*taken]) for taken in zip(*rounds, strict=True)]


def alternate(*functions: Callable[[], Any], n: int) -> list[Timing]:
    """Return the seconds of each function over `n` rounds in turn."""
    return in_turn([lambda function=function: seconds_of(function) for function in functions], n)  # type: ignore[misc]


def compete(contenders: dict[str, tuple[Any, ...]], *, n: int) -> dict[str, Timing]:
    """Return the seconds of functions that each have a process of their own, so that none has another's settings.

    Parameters
    ----------
    contenders : dict
        ``(make, *arguments)`` by name; `make` is at the top of a module and gives a function without arguments.
    n : int
        Rounds in turn, after one that is not counted.
    """
    with ExitStack() as stack:
        pools = [
            stack.enter_context(ProcessPoolExecutor(1, get_context("spawn"), initializer=_make, initargs=call))
            for call in contenders.values()
        ]
        timings = in_turn([lambda pool=pool: pool.submit(_run).result() for pool in pools], n)  # type: ignore[misc]
    return dict(zip(contenders, timings, strict=True))


def _make(make: Callable[..., Callable[[], Any]], *arguments: Any) -> None:
    _made.append(make(*arguments))


def _run() -> float:
    return seconds_of(_made[0])


# what the process of a contender runs
_made: list[Callable[[], Any]] = []


def record(
    name: str, ours: float | Timing, reference: float | Timing, *, unit: str, n: int, **more: Any
) -> dict[str, Any]:
    """Return a line of studies/results/bench.json: `ratio` is ours over the reference; medians, with ranges."""
    values = {"ours": ours, "reference": reference}
    medians = {name: value.median if isinstance(value, Timing) else value for name, value in values.items()}
    ranges = {
        f"{name}_range": [round(value.low, 4), round(value.high, 4)]
        for name, value in values.items()
        if isinstance(value, Timing)
    }
    versions = {name: version(name) for name in ("numpy", "scikit-learn", "torch")}
    return {
        "name": name,
        **{name: round(value, 4) for name, value in medians.items()},
        "ratio": round(medians["ours"] / medians["reference"], 3),
        "unit": unit,
        "n": n,
        **ranges,
        **more,
        "hardware": hardware(),
        "versions": {"python": platform.python_version()} | versions,
    }


def write_rows(rows: list[dict[str, Any]], path: Path = RESULTS) -> None:
    """Print rows, and put them into studies/results/bench.json in place of those of the same names and data."""
    for row in rows:
        shown = {name: value for name, value in row.items() if name not in ("hardware", "versions")}
        print(*(f"{name}={value}" for name, value in shown.items()), flush=True)
    new = {(row["name"], row.get("data")) for row in rows}
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    store.write_json(path, [row for row in known if (row["name"], row.get("data")) not in new] + rows)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Hold what a function took.

    Attributes
    ----------
    seconds, cpu_seconds : float
        Seconds by the clock, and of all threads together.
    peak, own_peak : int
        Bytes by which the memory of the process rose at most: all of it, with the pages of mapped files, which the
        system takes back when it needs them, and without these (sampled every 5 ms).
    """

    seconds: float
    cpu_seconds: float
    peak: int
    own_peak: int

    @classmethod
    def of(cls, function: Callable[[], Any]) -> "Usage":
        """Run a function once, after freed memory is given back and the peak is reset (Linux)."""
        _give_back()
        before, done = _status("RssAnon"), threading.Event()
        samples = [before]

        def watch() -> None:
            while not done.wait(0.005):
                samples[0] = max(samples[0], _status("RssAnon"))

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        resident, start, cpu = _status("VmRSS"), time.perf_counter(), time.process_time()
        function()
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu
        peak = _status("VmHWM") - resident
        done.set()
        watcher.join()
        own = max(samples[0], _status("RssAnon")) - before
        return cls(seconds=seconds, cpu_seconds=cpu_seconds, peak=peak, own_peak=own)


def _give_back() -> None:
    """Give freed memory back to the system: a function that used it again would seem to need none."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(key))


def uniform_tasks(rng: np.random.Generator, n_tasks: int, ways: int, n_classes: int) -> np.ndarray[Any, Any]:
    """Return the classes of tasks (n_tasks * ways,), drawn without replacement within a task."""
    return np.concatenate([rng.choice(n_classes, size=ways, replace=False) for _ in range(n_tasks)])
