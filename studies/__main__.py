"""Run a study, as in ``python -m studies labels.grid --data glyphs``; ``--help`` lists all of them."""

import sys

import typer

from studies.grid import NAMES, command


def main() -> None:
    """Build the command of the study that is asked for, or of all if none is, and run it."""
    app = typer.Typer(no_args_is_help=True, callback=lambda: None, help="Run a study; rows that are there stay.")
    for name in set(sys.argv[1:2]) & {*NAMES} or NAMES:
        app.command(name)(command(name))
    app()


if __name__ == "__main__":
    main()
