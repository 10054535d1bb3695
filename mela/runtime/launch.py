"""Start this program again as several processes, or tell that it is one of them."""

import logging
import os
import sys
from collections.abc import Mapping

from mela.errors import MelaError, interrupted
from mela.runtime.console import print_error


def launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether this process was started as one of several, by torchrun's variables."""
    return int(environment.get("WORLD_SIZE", "1")) > 1


def start(processes: int) -> None:
    """Start this program again as several processes by torchrun; if one fails, end with its exit status.

    Raises
    ------
    MelaError
        The system has ended a process.
    """
    # takes seconds, which a process that works alone need not wait for
    import torch
    from torch.distributed import run as torchrun
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, torch.get_num_threads() // processes)))
    module = sys.modules["__main__"].__spec__
    assert module is not None, "stages are started as modules: python -m stages.NAME"
    # said in full, since torchrun takes what is left out from variables of the environment (PET_MAX_RESTARTS)
    here = ["--standalone", "--nnodes=1", f"--nproc-per-node={processes}", "--max-restarts=0"]
    # the processes report their errors themselves, and signals are told below
    logging.disable(logging.CRITICAL)
    try:
        torchrun.run(torchrun.parse_args([*here, "-m", module.name, *sys.argv[1:]]))
    except SignalException as error:
        print_error(interrupted(error.sigval.name))
        sys.exit(128 + error.sigval)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode < 0:
            raise MelaError(
                f"process {rank} of {processes} was ended by signal {-failure.exitcode}; if it is 9, memory was "
                "probably too small: lower runtime.processes or the batch size"
            ) from None
        sys.exit(max(1, failure.exitcode))
    finally:
        logging.disable(logging.NOTSET)
