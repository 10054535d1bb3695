"""Timings and peaks of memory, as the studies of speed take and record them."""

from pathlib import Path

import numpy as np

from mela.reporting.environment import hardware
from studies.speed.measure import Timing, Usage, alternate, record


def test_record_gives_the_ratio_and_where_it_was_measured() -> None:
    row = record("a_vs_b", 3.0, 2.0, unit="s", n=5, tasks=7)
    assert (row["ratio"], row["tasks"], row["unit"], row["n"]) == (1.5, 7, "s", 5)
    assert row["hardware"] == hardware()
    assert {"python", "numpy", "scikit-learn", "torch"} == set(row["versions"])


def test_functions_take_turns_after_a_round_that_is_not_counted() -> None:
    calls: list[str] = []
    times = alternate(lambda: calls.append("a"), lambda: calls.append("b"), n=3)
    assert calls == ["a", "b"] * 4
    assert len(times) == 2
    assert all(0 <= taken.low <= taken.median <= taken.high < 1 for taken in times)


def test_record_tells_the_range_of_timings() -> None:
    row = record("a_vs_b", Timing.of([3.0, 1.0, 2.0]), 4.0, unit="s", n=3)
    assert (row["ours"], row["ours_range"], row["ratio"]) == (2.0, [1.0, 3.0], 0.5)
    assert "reference_range" not in row


def test_a_peak_shows_an_array() -> None:
    # 64 MB, written to so that it is really there
    assert 60e6 < Usage.of(lambda: np.ones(8_000_000)).peak < 80e6


def test_a_peak_shows_an_array_in_memory_that_was_freed_before() -> None:
    # blocks below the largest that glibc maps on their own, and one behind them that keeps their memory from the system
    blocks = [np.ones(3_000_000) for _ in range(8)]
    behind = [bytearray(100_000) for _ in range(100)]
    del blocks
    assert 60e6 < Usage.of(lambda: np.ones(8_000_000)).peak < 80e6
    assert len(behind) == 100


def test_usage_tells_memory_of_its_own_from_mapped_files(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(8_000_000))
    mapped = Usage.of(lambda: np.load(tmp_path / "a.npy", mmap_mode="r").sum())
    assert mapped.peak > 60e6
    assert mapped.own_peak < 10e6
    kept = []
    own = Usage.of(lambda: kept.append(np.ones(8_000_000)))
    assert 60e6 < own.own_peak < 80e6
    assert 0 < own.seconds < 5
