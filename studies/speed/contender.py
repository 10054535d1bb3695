"""Functions that are timed in processes of their own, so that none profits from the settings of another."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Any

from studies.speed.measure import Timing

Maker = Callable[..., Callable[[], Any]]


@contextmanager
def contender(make: Maker, *arguments: Any) -> Iterator[Callable[[], float]]:
    """A process that has called ``make(*arguments)``; within the block each call runs what that has given.

    Parameters
    ----------
    make : callable
        At the top of a module; gives a function without arguments.

    Yields
    ------
    callable
        Runs the function once in the process; gives the seconds that it took there.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, make, arguments))
    process.start()
    there.close()

    def run() -> float:
        here.send(True)
        seconds: float = here.recv()
        return seconds

    try:
        yield run
    finally:
        here.close()
        process.join()


def _serve(connection: Connection, make: Maker, arguments: tuple[Any, ...]) -> None:
    function = make(*arguments)
    while True:
        try:
            connection.recv()
        except EOFError:
            return
        start = time.perf_counter()
        function()
        connection.send(time.perf_counter() - start)


def compete(contenders: dict[str, tuple[Any, ...]], *, n: int) -> dict[str, Timing]:
    """Seconds of each contender, ``(make, *arguments)``, in `n` rounds in turn after one that is not counted."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    with ExitStack() as stack:
        runs = {name: stack.enter_context(contender(*call)) for name, call in contenders.items()}
        for turn in range(n + 1):
            for name, run in runs.items():
                seconds = run()
                if turn:
                    times[name].append(seconds)
    return {name: Timing.of(taken) for name, taken in times.items()}
