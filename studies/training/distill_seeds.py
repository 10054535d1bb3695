"""``python -m studies.training.distill_seeds`` is ``python -m studies training.distill_seeds``."""

import typer

from studies.grid import program

main = program("training.distill_seeds")

if __name__ == "__main__":
    typer.run(main)
