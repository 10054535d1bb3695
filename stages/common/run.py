"""Start a stage script, and report its failure."""

import functools
import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import psutil
import typer

from mela.params import check_document
from mela.runtime.console import ending_in_one_line, log
from mela.runtime.usage import keep, measured, write_usage
from stages.common.guard import require_no_signal, work_begins


def is_first() -> bool:
    """Tell whether this is the first of several processes, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def run(main: Callable[..., Any]) -> None:
    """Run a stage with its command line; an error that the user can put right becomes one line and exit status 1."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    for name, kind in get_type_hints(main).items():
        if kind in (Path, Path | None):
            # typer tells of a file that must not be read as if the command line were wrong
            main.__annotations__[name] = Annotated[kind, typer.Option(readable=False)]
    app.command()(_telling_usage(main))
    try:
        with ending_in_one_line():
            app()
    finally:
        # Python ends with a search for garbage in all that was imported, which takes long after torch; files are closed
        gc.freeze()


def _telling_usage(main: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function tell and keep the time and memory that it took."""

    @functools.wraps(main)
    def telling(**arguments: Any) -> None:
        # with what it took to import all that it needs
        with measured(psutil.Process().create_time()) as usage:
            work_begins()
            # a mistake in the block of a later stage is thus found before this one has worked for hours; where several
            # processes share the work, the first one tells
            if "params" in arguments and is_first():
                check_document(arguments["params"])
            try:
                main(**arguments)
            except Exception:
                # Python makes the end of the program an error where a class is being made, in an import perhaps
                require_no_signal()
                raise
            require_no_signal()
        if "RANK" in os.environ:
            # one of several, and the one that started them tells
            return
        # one script has a cell for each kind of labels, and one for each round
        cell = arguments.get("labels", arguments.get("number"))
        stage = Path(sys.argv[0]).stem + (f"@{cell}" if isinstance(cell, str) else "")
        log.info(f"{stage}: {usage}")
        with suppress(OSError):
            keep(stage, usage)
            if file := os.environ.get("MELA_USAGE"):
                write_usage(Path(file), usage)

    return telling
