"""Start a stage whose work several processes share: `runtime.processes` or as many as torchrun started."""

import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mela.errors import line_of
from mela.params import PARAMS, RuntimeParams
from mela.runtime.console import print_error
from mela.runtime.launch import launched, start
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
