"""Define ``mela review``: ask people whether labels are the same."""

import webbrowser
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Annotated

import typer

from mela.errors import MelaError
from mela.runtime.console import log

DEFAULT, NAMES = Path("corrections.csv"), Path("class_names.csv")
# what the answers in another table, or in this one, are for
USE = ("; copy them into corrections.csv for `dvc repro`", "; `dvc repro` keeps to them")
INSTALL = "run `pip install -e '.[review]'` in a clone of the project, or `pip install starlette uvicorn` elsewhere"


def review(
    corrections: Annotated[Path, typer.Option(help="The table that answers are added to.")] = DEFAULT,
    names: Annotated[Path, typer.Option(help="The table that names of classes are added to.")] = NAMES,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Of this machine; 0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Ask on a page of this machine whether labels are the same, the most doubtful first, and keep the answers.

    It asks about the labels of the last run in this folder. `dvc repro` then keeps to the answers exactly, and joins
    and divides classes accordingly. Classes can be named there, too. The page can only be seen from this machine, by
    those who know its address.

    Example: `mela review`, then answer by the keys S, D, K and U
    """
    try:
        from mela.review.server import serve
    except ModuleNotFoundError as error:
        raise MelaError(f"review: expected the package {error.name}, which is not installed; {INSTALL}") from None
    from mela.labeling.correction_tables import read_corrections
    from mela.review.project import read_project
    from mela.review.session import Session

    log.info("review: finding the classes of the last run")
    session = Session(project := read_project(), corrections, names)
    # what is wrong in the tables is told here, and not on the page
    session.state()
    with TemporaryDirectory() as private, suppress(KeyboardInterrupt):

        def begin(address: str) -> None:
            log.info(f"review: {address} (end with Ctrl-C)")
            if browser:
                # an address on the command line of a browser could be seen by others on this machine
                page = Path(private, "review.html")
                page.write_text(f'<meta http-equiv="refresh" content="0; url={address}">', encoding="utf-8")
                Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()

        # an interruption is how a review ends
        serve(project, session, port, begin)
    log.info(f"review: {len(read_corrections(corrections))} answers are in {corrections}{USE[corrections == DEFAULT]}")
