"""Run a study, as in ``python -m studies labels.grid --data glyphs``; ``--help`` lists all of them."""

import sys

import typer

from mela.runtime.console import ending_in_one_line
from studies.grid import NAMES, command


def main() -> None:
    """Build the command of the study that is asked for, or of all if none is, and run it."""
    words = "Run a study; rows that are there stay."
    app = typer.Typer(no_args_is_help=True, callback=lambda: None, help=words, pretty_exceptions_enable=False)
    for name in set(sys.argv[1:2]) & {*NAMES} or NAMES:
        app.command(name)(command(name))
    with ending_in_one_line():
        app()


if __name__ == "__main__":
    main()
