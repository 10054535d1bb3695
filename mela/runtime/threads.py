"""Solve many small problems side by side.

joblib limits the threads of BLAS only in processes of its own, and starting these takes longer than solving such
problems.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

Problem = TypeVar("Problem")
Solution = TypeVar("Solution")


def on_all_threads(solve: Callable[[Problem], Solution], problems: Iterable[Problem]) -> list[Solution]:
    """Solve the problems on as many threads as torch may use, each of which works alone.

    The problems are too small for several threads to share one: they would only wait for each other.
    """
    n_threads = torch.get_num_threads()  # which the limit would set to 1
    with threadpool_limits(1), ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(solve, problems))
