"""The turns of the bench. Without torch here, which every contender would import."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from studies.speed.measure import Timing, compete


def sleeper(seconds: float, log: str) -> Callable[[], None]:
    def run() -> None:
        with Path(log).open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(seconds)

    return run


@pytest.mark.slow
def test_contenders_take_turns_in_processes_of_their_own(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    found = compete({"short": (sleeper, 0.01, log), "long": (sleeper, 0.05, log)}, n=2)
    processes = Path(log).read_text(encoding="utf-8").split()
    assert processes == processes[:2] * 3
    assert len({*processes, str(os.getpid())}) == 3
    assert 0.01 <= found["short"].low <= found["short"].high < 0.05 <= found["long"].low
    assert all(isinstance(timing, Timing) for timing in found.values())
