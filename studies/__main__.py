"""Run a study that is a grid: ``python -m studies labels.grid --data glyphs``; ``--help`` lists all of them."""

import typer

from studies.grid import FILES, program

app = typer.Typer(no_args_is_help=True)
for name in FILES:
    app.command(name)(program(name))

if __name__ == "__main__":
    app()
