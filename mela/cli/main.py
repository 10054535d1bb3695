"""Define the command line beside the pipeline."""

from typing import Annotated

import typer

import mela
from mela.cli import data, label
from mela.cli.add import add
from mela.cli.download import download
from mela.cli.export import export
from mela.cli.init import init
from mela.cli.predict import predict
from mela.cli.preset import preset
from mela.cli.review import review
from mela.cli.run import run
from mela.cli.summary import summary
from mela.errors import MelaError
from mela.runtime.console import ending_in_one_line, speak

RUN, DATA, MODEL = "Run the pipeline", "Your own data", "Use what was learned"

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="markdown")


def _tell_version(asked: bool) -> None:
    if asked:
        print(f"mela {mela.__version__}")
        raise typer.Exit


@app.callback()
def _group(
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Say more, of errors also where they arise.")
    ] = False,
    _: Annotated[bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Say which.")] = False,
) -> None:
    """Infer the classes that independently labelled tasks share, and learn an embedding from them.

    The pipeline itself is run by DVC, in a folder that `mela init` makes or in a clone:

    - `dvc repro` runs the stages whose inputs, code or parameters (params.yaml) have changed;

    - `dvc exp run -S pretrain.epochs=20` does so with another value, and `dvc exp show --only-changed` compares;

    - `mela run` runs all stages one after the other, without Git and DVC;

    - `MELA_OUTPUT=quiet dvc repro` (or `verbose`) says less (or more) than usual.

    **mela** has the commands around it; `mela COMMAND --help` explains one, and `mela --install-completion` makes the
    shell complete names.

    The exit status is 0 when all was done; 1 after an error, which is told in one line on standard error with what to
    do about it; 2 if the command line is wrong; 130 after Ctrl-C. Colours and bars are for terminals alone;
    `NO_COLOR=1` takes the colours away.
    """
    if quiet and verbose:
        raise MelaError("--quiet, --verbose: expected one of them at most, got both; leave one out")
    if quiet or verbose:
        speak("quiet" if quiet else "verbose")


for command in (init, preset, run, summary, download):
    app.command(rich_help_panel=RUN)(command)
app.command(rich_help_panel=DATA)(label.label)
app.command(rich_help_panel=DATA)(add)
app.command(rich_help_panel=DATA)(review)
app.add_typer(data.app, name="data", rich_help_panel=DATA)
app.command(rich_help_panel=MODEL)(predict)
app.command(rich_help_panel=MODEL)(export)


def main() -> None:
    """Run the program; an error that the user can put right becomes one line and exit status 1."""
    with ending_in_one_line():
        app()
