"""Run the notebook of the tour, and keep what it prints and draws: ``python -m docs._tools.tour``."""

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import nbformat
import typer
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "guides/tour.ipynb"
SECONDS = 1200


def main(
    out: Annotated[Path, typer.Option(help="Where to write the notebook with its outputs.")] = NOTEBOOK,
    folder: Annotated[Path | None, typer.Option(help="Where to run it; by default a folder that is deleted.")] = None,
) -> None:
    """Run all cells in a folder of their own, and write the notebook with their outputs."""
    book = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    with TemporaryDirectory() as temporary:
        place = {"metadata": {"path": str(folder or temporary)}}
        path = os.environ.get("PATH", "")
        if shutil.which("mela") is None or shutil.which("dvc") is None:
            # an environment that is not activated has them beside its Python
            path = f"{Path(sys.executable).parent}{os.pathsep}{path}"
        NotebookClient(book, timeout=SECONDS, resources=place, coalesce_streams=True).execute(
            env=os.environ | {"PATH": path}
        )
    for number, cell in enumerate(book.cells):
        # what differs from run to run and says nothing
        cell.metadata.clear()
        cell.id = f"cell-{number:02}"
    book.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(book, out)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    typer.run(main)
