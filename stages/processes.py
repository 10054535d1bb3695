"""How a stage starts whose work several processes share: `runtime.processes` or as many as torchrun started."""

import functools
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from mela.compute import Compute
from mela.device import choose_device, keep_freed_memory
from mela.errors import MelaError
from mela.params import PARAMS, RuntimeParams
from mela.precision import Precision, choose_dtype
from mela.team import joined, launched
from stages.run import run

PATIENCE = 2.0


def run_shared(main: Callable[..., None]) -> None:
    """Run a stage like `stages.run.run`, in this process or in several that it starts."""

    @functools.wraps(main)
    def shared(**arguments: Any) -> None:
        params: Path = arguments.get("params", PARAMS)
        processes = RuntimeParams.read(params).processes
        if processes > 1 and not launched():
            _start(processes)
            return
        try:
            main(**arguments)
        except (MelaError, OSError):
            if int(os.environ.get("RANK", "0")):
                # most errors are those of all processes, and the first one, which tells, ends the others
                time.sleep(PATIENCE)
            raise

    run(shared)


@contextmanager
def computing(runtime: RuntimeParams, precision: Precision = "float32") -> Iterator[tuple[torch.device, Compute]]:
    """The device of this process, and how it computes, together with the others that were started with it."""
    device = choose_device(runtime.device)
    if device.type == "cpu":
        keep_freed_memory()
    with joined(device) as team:
        yield device, Compute(dtype=choose_dtype(precision, device), team=team, compiled=runtime.compile)


def _start(processes: int) -> None:
    """Start this program again, several times, on this machine; its exit status is theirs."""
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // processes)))
    # the processes report their errors themselves
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        run_id="mela",
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        max_restarts=0,
    )
    module = sys.modules["__main__"].__spec__
    assert module is not None, "stages are started as modules: python -m stages.NAME"
    try:
        elastic_launch(config, sys.executable)("-m", module.name, *sys.argv[1:])
    except ChildFailedError as error:
        sys.exit(max(1, error.get_first_failure()[1].exitcode))
