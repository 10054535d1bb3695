"""How a stage script starts and how it fails."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import typer

from mela.errors import MelaError, one_line


def run(main: Callable[..., Any]) -> None:
    """Run a stage with its command line; an error that the user can put right becomes one line and exit status 1."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(main)
    try:
        app()
    except (MelaError, OSError) as error:
        print(f"error: {one_line(error)}", file=sys.stderr)
        sys.exit(1)
    finally:
        # Python ends with a search for garbage in all that was imported, which takes long after torch; files are closed
        gc.freeze()
