"""A program that starts itself again, several times."""

import logging
import os
import sys

import torch

from mela.errors import MelaError, interrupted
from mela.output import print_error


def start(processes: int) -> None:
    """Start this program, a module, again as several processes of a team; if one fails, end with its exit status.

    Raises
    ------
    MelaError
        The system has ended a process.
    """
    from torch.distributed.elastic.multiprocessing.api import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, torch.get_num_threads() // processes)))
    # the processes report their errors themselves, and signals are told below
    logging.disable(logging.CRITICAL)
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
    except SignalException as error:
        print_error(interrupted(error.sigval.name))
        sys.exit(128 + error.sigval)
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        if failure.exitcode < 0:
            raise MelaError(
                f"process {rank} of {processes}: expected it to finish, got signal {-failure.exitcode} "
                "(9 is often a lack of memory)"
            ) from None
        sys.exit(max(1, failure.exitcode))
    finally:
        logging.disable(logging.NOTSET)
