"""How a stage script starts and how it fails."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import typer

from mela.errors import MelaError, one_line

# as PyTorch says it for CPUs and GPUs, whose errors are RuntimeErrors
OUT_OF_MEMORY = ("can't allocate memory", "OutOfMemoryError", "not enough memory")
LESS = "use a machine with more, or lower batch_size or tasks_per_step, raise accumulate, or take smaller images"


def run(main: Callable[..., Any]) -> None:
    """Run a stage with its command line; an error that the user can put right becomes one line and exit status 1."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    try:
        app()
    except (MelaError, OSError) as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(sign in repr(error) for sign in OUT_OF_MEMORY):
            raise
        print(f"error: out of memory: {one_line(error)}; {LESS}", file=sys.stderr)
        sys.exit(1)
    finally:
        # Python ends with a search for garbage in all that was imported, which takes long after torch; files are closed
        gc.freeze()
