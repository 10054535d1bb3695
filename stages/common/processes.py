"""Start a stage whose work several processes share: `runtime.processes` or as many as torchrun started."""

import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from mela.errors import LESS, MelaError, line_of, one_line, out_of_memory
from mela.params import PARAMS, RuntimeParams
from mela.runtime.compute import Compute
from mela.runtime.console import log, print_error
from mela.runtime.device import Precision, choose_device, choose_dtype
from mela.runtime.progress import Watch, watched
from mela.runtime.team import joined, launched, start
from stages.common.run import run

PATIENCE = 2.0


def run_shared(main: Callable[..., None]) -> None:
    """Run a stage like `stages.common.run.run`, in this process or in several that it starts."""

    @functools.wraps(main)
    def shared(**arguments: Any) -> None:
        params: Path = arguments.get("params", PARAMS)
        processes = RuntimeParams.read(params).processes
        if processes > 1 and not launched():
            start(processes)
            return
        try:
            main(**arguments)
        except Exception as error:
            if not launched():
                raise
            line = line_of(error)
            if line is None:
                # a RuntimeError of PyTorch: another process is gone; that one has said why, and this one is about to
                # be ended
                time.sleep(PATIENCE)
                raise
            # most errors are those of all processes, and the first one, which tells, ends the others
            if int(os.environ["RANK"]):
                time.sleep(PATIENCE)
            print_error(line)
            # at once: the threads that talk to the other processes do not end by themselves
            os._exit(1)

    run(shared)


@contextmanager
def computing(
    stage: str, things: str, runtime: RuntimeParams, precision: Precision = "float32", *, less: str = LESS
) -> Iterator[tuple[torch.device, Compute, Watch]]:
    """Yield this process's device, how it computes with the others, and a watch of the stage's progress.

    Where memory is too small for the work, the error says how to need `less`.
    """
    device = choose_device(runtime.device)
    with joined(device) as team:
        if device.type == "cuda" and team.leads:
            log.info("on a GPU: the same seed gives the same draws; sums may differ in their last bits")
        compute = Compute(dtype=choose_dtype(precision, device), team=team, compiled=runtime.compile)
        if team.leads:
            log.debug(f"{stage}: {device}, {torch.get_num_threads()} threads, {team.size} processes, {compute.dtype}")
        with watched(stage, things, shown=team.leads) as watch:
            try:
                yield device, compute, watch
            except Exception as error:
                if not out_of_memory(error):
                    raise
                raise MelaError(f"{stage}: out of memory: {one_line(error)}; {less}") from error
