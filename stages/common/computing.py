"""Prepare the device of a stage, and the processes that share its work."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from mela.errors import LESS, MelaError, one_line, out_of_memory
from mela.params import RuntimeParams
from mela.runtime.compute import Compute
from mela.runtime.console import log
from mela.runtime.device import Precision, choose_device, choose_dtype
from mela.runtime.progress import Watch, watched
from mela.runtime.team import joined


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
