"""How a stage script starts and how it fails."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import typer

from mela.errors import MelaError, one_line

# as PyTorch says it for CPUs and GPUs, whose errors are RuntimeErrors
OUT_OF_MEMORY = (
    "can't allocate memory",
    "not enough memory",
    "OutOfMemoryError",
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "Failed to CUDA calloc",
)
LESS = "use a machine with more, or lower batch_size or tasks_per_step, raise accumulate, or take smaller images"


def line_of(error: Exception) -> str | None:
    """What users are told of an error that they can put right; None for any other, which is a defect."""
    if isinstance(error, MelaError | OSError):
        return f"error: {one_line(error)}"
    if isinstance(error, MemoryError) or any(sign in repr(error) for sign in OUT_OF_MEMORY):
        return f"error: out of memory: {one_line(error)}; {LESS}"
    return None


def run(main: Callable[..., Any]) -> None:
    """Run a stage with its command line; an error that the user can put right becomes one line and exit status 1."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    try:
        app()
    except Exception as error:
        line = line_of(error)
        if line is None:
            raise
        print(line, file=sys.stderr)
        sys.exit(1)
    finally:
        # Python ends with a search for garbage in all that was imported, which takes long after torch; files are closed
        gc.freeze()
